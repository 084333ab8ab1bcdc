/* Who gets a place when there are few: limits of the whole and of an address, who has to make room,
 * and who is told why. On real sockets, since whoever makes room is shut down. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "api/connection.h"
#include "common/shm/metrics.h"

#define OPEN_MAX_ 512

struct scene {
    struct connections all;
    struct metrics *metrics;
    struct connection *open[OPEN_MAX_];
    int fds[OPEN_MAX_][2];
    size_t count;
};

static void begin(struct scene *scene, uint32_t max, uint32_t max_per_address)
{
    const struct connection_limits limits = {.head_ms = 10000,
                                             .body_ms = 10000,
                                             .idle_ms = 10000,
                                             .writing_ms = 10000,
                                             .max = max,
                                             .max_per_address = max_per_address};

    memset(scene, 0, sizeof(*scene));
    scene->metrics = metrics_create_private();
    connections_init(&scene->all, &limits, scene->metrics);
}

static void end(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++) {
        connection_destroy(&scene->all, &scene->open[i]);
        (void)close(scene->fds[i][0]);
        (void)close(scene->fds[i][1]);
    }
    assert_int_equal(scene->all.count, 0);
    assert_int_equal(scene->all.places, 0);
    assert_int_equal(scene->all.refused, 0);
    for (unsigned i = 0; i < PEER_BUCKETS; i++) {
        assert_null(scene->all.peers.buckets[i]);
    }
    metrics_destroy(&scene->metrics);
}

static struct sockaddr_in v4(uint8_t host)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(0x0a000000U + host)}};
}

/* NULL: closed without a word. */
static struct connection *connect_from(struct scene *scene, const struct sockaddr *address)
{
    int *fds = scene->fds[scene->count];

    if (!connections_may_come(&scene->all, address)) {
        return NULL;
    }
    assert_true(scene->count < OPEN_MAX_);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct connection *c = connection_create(&scene->all, fds[0], NULL, address, 0);

    assert_non_null(c);
    scene->open[scene->count++] = c;
    return c;
}

static struct connection *from(struct scene *scene, uint8_t host)
{
    const struct sockaddr_in address = v4(host);

    return connect_from(scene, (const struct sockaddr *)&address);
}

static struct connection *working_from(struct scene *scene, uint8_t host)
{
    struct connection *c = from(scene, host);

    connection_set_phase(&scene->all, c, CONNECTION_WORKING, 0);
    return c;
}

static uint64_t counted(const struct scene *scene, enum label_http_limit limit)
{
    static struct metrics_snapshot snapshot;

    metrics_snapshot_of(scene->metrics, &snapshot);
    return metrics_value(&snapshot, METRIC_http_limited_total, limit);
}

static void an_address_has_its_own_limit_and_others_have_theirs(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 100, 2);
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_NONE);
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_NONE);
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_TOO_MANY_FROM_ADDRESS);
    assert_int_equal(from(&scene, 2)->refusal, PROBLEM_NONE);
    assert_int_equal(counted(&scene, LABEL_HTTP_LIMIT_CONNECTIONS_PER_ADDRESS), 1);
    assert_int_equal(scene.all.places, 3);
    connection_destroy(&scene.all, &scene.open[0]); /* a place is free again */
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_NONE);
    for (int i = 0; i < 5; i++) { /* file permissions say who may use a local socket */
        assert_int_equal(connect_from(&scene, NULL)->refusal, PROBLEM_NONE);
    }
    end(&scene);
}

static void a_network_of_ipv6_is_one_address(void **state)
{
    static struct scene scene;
    struct sockaddr_in6 a = {.sin6_family = AF_INET6}, b = a, c = a;

    (void)state;
    begin(&scene, 100, 1);
    a.sin6_addr.s6_addr[0] = b.sin6_addr.s6_addr[0] = c.sin6_addr.s6_addr[0] = 0x20;
    b.sin6_addr.s6_addr[15] = 7;
    c.sin6_addr.s6_addr[7] = 7;
    assert_int_equal(connect_from(&scene, (struct sockaddr *)&a)->refusal, PROBLEM_NONE);
    assert_int_equal(connect_from(&scene, (struct sockaddr *)&b)->refusal,
                     PROBLEM_TOO_MANY_FROM_ADDRESS);
    assert_int_equal(connect_from(&scene, (struct sockaddr *)&c)->refusal, PROBLEM_NONE);
    end(&scene);
}

static void whoever_holds_most_makes_room_for_a_newcomer(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 4, 0);
    struct connection *modest = from(&scene, 1);
    struct connection *oldest = from(&scene, 9);

    (void)from(&scene, 9);
    (void)from(&scene, 9);
    connection_set_phase(&scene.all, modest, CONNECTION_IDLE, 0);
    assert_int_equal(from(&scene, 2)->refusal, PROBLEM_NONE);
    assert_true(oldest->is_cut);
    assert_false(modest->is_cut);
    assert_int_equal(scene.all.places, 4);
    assert_int_equal(counted(&scene, LABEL_HTTP_LIMIT_CONNECTIONS), 1);
    end(&scene);
}

static void a_connection_between_requests_goes_first(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 3, 0);
    struct connection *sending = from(&scene, 9), *idle = from(&scene, 9);

    (void)from(&scene, 9);
    connection_set_phase(&scene.all, sending, CONNECTION_BODY, 0);
    connection_set_phase(&scene.all, idle, CONNECTION_IDLE, 0);
    assert_int_equal(from(&scene, 2)->refusal, PROBLEM_NONE);
    assert_true(idle->is_cut);
    assert_false(sending->is_cut);
    end(&scene);
}

static void nobody_that_we_work_for_is_cut_and_the_newcomer_is_told(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 3, 0);
    for (int i = 0; i < 3; i++) {
        (void)working_from(&scene, 9);
    }
    struct connection *newcomer = from(&scene, 2);

    assert_int_equal(newcomer->refusal, PROBLEM_TOO_MANY_CONNECTIONS);
    assert_int_equal(newcomer->phase, CONNECTION_REFUSED);
    for (int i = 0; i < 3; i++) {
        assert_false(scene.open[i]->is_cut);
    }
    end(&scene);
}

static void equals_do_not_push_each_other_out_in_the_middle_of_a_request(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 2, 0);
    struct connection *first = from(&scene, 1);

    (void)from(&scene, 2);
    assert_int_equal(from(&scene, 3)->refusal, PROBLEM_TOO_MANY_CONNECTIONS);
    assert_false(first->is_cut);
    end(&scene);
}

static void one_address_alone_gives_up_its_own_idle_ones_only(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 2, 0);
    struct connection *sending = from(&scene, 1), *idle = from(&scene, 1);

    connection_set_phase(&scene.all, sending, CONNECTION_BODY, 0);
    connection_set_phase(&scene.all, idle, CONNECTION_IDLE, 0);
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_NONE);
    assert_true(idle->is_cut);
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_TOO_MANY_CONNECTIONS);
    assert_false(sending->is_cut);
    end(&scene);
}

static void so_many_are_told_why_and_the_rest_is_closed(void **state)
{
    static struct scene scene;
    unsigned told = 0, closed = 0;

    (void)state;
    begin(&scene, 200, 1);
    assert_int_equal(from(&scene, 1)->refusal, PROBLEM_NONE);
    for (int i = 0; i < 100; i++) {
        const struct connection *c = from(&scene, 1);

        told += c != NULL;
        closed += c == NULL;
    }
    assert_int_equal(told, CONNECTIONS_REFUSED_MAX);
    assert_int_equal(closed, 100 - CONNECTIONS_REFUSED_MAX);
    assert_int_equal(counted(&scene, LABEL_HTTP_LIMIT_CONNECTIONS_PER_ADDRESS), 100);
    assert_int_equal(from(&scene, 2)->refusal, PROBLEM_NONE); /* others come in all the same */
    assert_true(connections_expire(&scene.all, 2500) > 2500); /* they do not stay for long */
    assert_int_equal(scene.all.refused, 0);
    end(&scene);
}

static void a_slow_head_on_a_kept_connection_has_the_time_of_a_head(void **state)
{
    static struct scene scene;

    (void)state;
    begin(&scene, 2, 0);
    struct connection *c = from(&scene, 1);

    connection_set_phase(&scene.all, c, CONNECTION_IDLE, 0);
    connection_begins_request(&scene.all, c, 1000);
    assert_int_equal(c->phase, CONNECTION_HEAD);
    connection_set_phase(&scene.all, c, CONNECTION_BODY, 1000);
    connection_begins_request(&scene.all, c, 1000); /* nothing but between requests */
    assert_int_equal(c->phase, CONNECTION_BODY);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_its_own_limit_and_others_have_theirs),
        cmocka_unit_test(a_network_of_ipv6_is_one_address),
        cmocka_unit_test(whoever_holds_most_makes_room_for_a_newcomer),
        cmocka_unit_test(a_connection_between_requests_goes_first),
        cmocka_unit_test(nobody_that_we_work_for_is_cut_and_the_newcomer_is_told),
        cmocka_unit_test(equals_do_not_push_each_other_out_in_the_middle_of_a_request),
        cmocka_unit_test(one_address_alone_gives_up_its_own_idle_ones_only),
        cmocka_unit_test(so_many_are_told_why_and_the_rest_is_closed),
        cmocka_unit_test(a_slow_head_on_a_kept_connection_has_the_time_of_a_head),
    };

    return sodium_init() < 0 ? 1 : cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
