/* Walks over whole workspaces: what is accepted while one is under way, and that its cost does not
 * depend on what else the store holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define CAP 6

static struct sync_store *s;      /* workers and people */
static struct sync_store *walker; /* on a loop of its own: goes on only when we let it */
static struct sync_walking walking;

static void check_invariants(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

/* ---- what comes while a walk is under way ---- */

static void accept_everywhere(const char *prefix)
{
    char id[32], session[32];

    for (unsigned i = 0; i < 8; i++) {
        snprintf(id, sizeof(id), "%s%u", prefix, i);
        snprintf(session, sizeof(session), "s%u", i);
        assert_int_equal(sync_accept(s, "ws", session, id, "", "d", "s", CAP, NULL),
                         ACCEPT_ACCEPTED);
    }
}

/* Accepts into every session, seen by the walk or not, when it has begun and not ended. */
static void accept_during(enum walk_kind kind)
{
    sync_raw(s, "FLUSHALL");
    accept_everywhere("early");
    sync_walk_begin(walker, kind, "ws", 1, &walking);
    for (unsigned i = 0; i < 6; i++) {
        sync_walk_on(walker, s);
    }
    assert_false(walking.is_done);
    uv_sleep(3); /* the store counts in milliseconds: these are later ones */
    accept_everywhere("late");
}

static void finish_walk(void)
{
    sync_walk_end(walker, &walking);
}

static void what_is_accepted_later_is_not_parked(void **state)
{
    (void)state;
    accept_during(WALK_PARK);
    finish_walk();
    assert_int_equal(walking.answer.count, 8);
    for (unsigned i = 0; i < 8; i++) {
        char id[32];

        snprintf(id, sizeof(id), "early%u", i);
        assert_string_equal(sync_state(s, "ws", id), "parked");
        snprintf(id, sizeof(id), "late%u", i);
        assert_string_equal(sync_state(s, "ws", id), "pending");
    }
    check_invariants();
}

static void what_is_accepted_during_a_cleanup_is_delivered(void **state)
{
    (void)state;
    accept_during(WALK_CLEANUP);
    finish_walk();
    struct taken_list list = sync_claim(s, "ws", "node.1.4.a.1", 20, 20, NULL, 0);

    assert_int_equal(list.count, 8);
    for (size_t i = 0; i < list.count; i++) {
        assert_memory_equal(list.items[i].id, "late", 4);
    }
    check_invariants();
}

static void nothing_waits_for_what_a_cleanup_took(void **state)
{
    const unsigned p = partition_of("ws", 2);

    (void)state;
    accept_during(WALK_CLEANUP);
    assert_string_equal(sync_state(s, "ws", "early7"), "pending"); /* its turn has not come */
    sync_raw(s, "HSET outboxe:{%u}:ws:late0 deps early7", p);
    sync_raw(s, "SADD outboxdep:{%u}:ws:early7 late0", p);
    finish_walk();
    assert_string_equal(sync_state(s, "ws", "late0"), "error");
    assert_string_equal(sync_state(s, "ws", "late1"), "pending");
    assert_string_equal(sync_raw(s, "EXISTS outboxdep:{%u}:ws:early7", p), "0");
    check_invariants();
}

/* ---- walks that are cut ---- */

#define FAR_AWAY "9999999999999"

static void begin_anew(void)
{
    sync_raw(s, "FLUSHALL");
}

static void accept_one(const char *session, const char *id, const char *flags)
{
    assert_int_equal(sync_accept(s, "ws", session, id, "", "d", flags, CAP, NULL), ACCEPT_ACCEPTED);
}

/* Its session waits for it, and the workspace for the session. */
static void wait_long(const char *session, const char *id)
{
    const unsigned p = partition_of("ws", 2);

    sync_raw(s, "HSET outboxe:{%u}:ws:%s nextAttemptAt " FAR_AWAY, p, id);
    sync_raw(s, "ZADD outboxws:{%u}:ws " FAR_AWAY " %s", p, session);
    sync_raw(s, "ZADD outboxdue:{%u} " FAR_AWAY " ws", p);
}

/* Up to where the walk has changed that entry; what stands then is what a cut leaves. */
static void walk_past(enum walk_kind kind, const char *id)
{
    char before[32];

    snprintf(before, sizeof(before), "%s", sync_state(s, "ws", id));
    sync_walk_begin(walker, kind, "ws", 1, &walking);
    while (strcmp(sync_state(s, "ws", id), before) == 0) {
        sync_walk_on(walker, s);
    }
    assert_false(walking.is_done);
}

static void claims_find_everything(void)
{
    check_invariants();
    assert_int_equal(sync_audit(s, "ws"), 0);
}

static void a_cut_cleanup_leaves_nobody_behind_what_it_took(void **state)
{
    (void)state;
    begin_anew();
    accept_one("a", "first", "s");
    accept_one("a", "second", "s");
    accept_one("a", "third", "s");
    wait_long("a", "first");
    walk_past(WALK_CLEANUP, "first");
    claims_find_everything();
    finish_walk();
}

static void a_cut_cleanup_leaves_nobody_waiting_for_what_it_took(void **state)
{
    const unsigned p = partition_of("ws", 2);

    (void)state;
    begin_anew();
    accept_one("a", "first", "s");
    accept_one("b", "waits", "s");
    sync_raw(s, "HSET outboxe:{%u}:ws:waits deps first", p);
    sync_raw(s, "SADD outboxdep:{%u}:ws:first waits", p);
    sync_raw(s, "ZADD outboxws:{%u}:ws +inf b", p);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 a", p); /* walks come to it first */
    walk_past(WALK_CLEANUP, "first");
    assert_string_equal(sync_state(s, "ws", "waits"), "pending");
    assert_string_not_equal(sync_raw(s, "ZSCORE outboxws:{%u}:ws b", p), "inf");
    claims_find_everything();
    finish_walk();
}

/* The target owns `first`, which the session waits for until it is parked. */
static void a_cut_park_leaves_nobody_waiting_for_what_it_parked(void **state)
{
    (void)state;
    begin_anew();
    accept_one("a", "first", "");
    accept_one("a", "second", "");
    struct taken_list list = sync_claim(s, "ws", "node.1.4.a.1", 1, 1, NULL, 0);

    assert_string_equal(list.items[0].id, "first");
    sync_settle(s, &list.items[0], OUTCOME_PRIOR_PENDING, false);
    wait_long("a", "first");
    walk_past(WALK_PARK, "first");
    claims_find_everything();
    finish_walk();
}

/* ---- what it costs ---- */

/* Microseconds that the scripts have taken so far. */
static double script_time(void)
{
    redisReply *reply = redisCommand(s->raw, "INFO commandstats");
    const char *at = reply->str ? strstr(reply->str, "cmdstat_evalsha:") : NULL;
    const char *usec = at ? strstr(at, "usec=") : NULL;
    const double time = usec ? strtod(usec + 5, NULL) : -1;

    freeReplyObject(reply);
    assert_true(time >= 0);
    return time;
}

static double cost_of_a_round(void)
{
    const double start = script_time();

    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(sync_walk(s, WALK_PARK, "small", 0), 100);
        assert_int_equal(sync_walk(s, WALK_UNPARK, "small", 0), 100);
    }
    return script_time() - start;
}

/* Sessions of other workspaces in the same partition, all alike: only their number counts. */
static const char *const fill =
    "#!lua flags=allow-cross-slot-keys\n"
    "local p, from, to = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])\n"
    "for i = from, to - 1 do\n"
    "  local ws, id = 'other' .. i % 500, 'f' .. i\n"
    "  local t = ':{' .. p .. '}'\n"
    "  redis.call('HSET', 'outboxe' .. t .. ':' .. ws .. ':' .. id, 'status', 'pending', "
    "'acceptedAt', "
    "1, 'session', 's' .. i, 'flags', 's', 'nextAttemptAt', 99999999999999)\n"
    "  redis.call('RPUSH', 'outboxq' .. t .. ':' .. ws .. ':s' .. i, id)\n"
    "  redis.call('ZADD', 'outboxws' .. t .. ':' .. ws, 99999999999999, 's' .. i)\n"
    "  redis.call('ZADD', 'outboxdue' .. t, 99999999999999, ws)\n"
    "  redis.call('ZADD', 'outboxnames' .. t, 0, ws)\n"
    "  redis.call('ZADD', 'outboxopen' .. t, 1, ws .. ':' .. id)\n"
    "end\n"
    "return 'OK'\n";

static void fill_up(unsigned from, unsigned to)
{
    const unsigned p = partition_of("small", 5);

    for (unsigned at = from; at < to; at += 5000) {
        redisReply *reply = redisCommand(s->raw, "EVAL %s 0 %u %u %u", fill, p, at,
                                         at + 5000 < to ? at + 5000 : to);

        assert_non_null(reply);
        assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    }
}

/* Whatever else the machine does only adds: the least of some is the nearest. */
static double least_cost(void)
{
    double least = cost_of_a_round();

    for (int i = 0; i < 4; i++) {
        const double cost = cost_of_a_round();

        least = cost < least ? cost : least;
    }
    return least;
}

static void the_rest_of_the_store_costs_a_workspace_nothing(void **state)
{
    char id[32], session[32];

    (void)state;
    sync_raw(s, "FLUSHALL");
    for (unsigned i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "e%u", i);
        snprintf(session, sizeof(session), "s%u", i % 20);
        sync_accept(s, "small", session, id, "", "d", "s", 100, NULL);
    }
    fill_up(0, 100);
    cost_of_a_round(); /* warm */
    const double few = least_cost();

    fill_up(100, 50000);
    const double many = least_cost();

    print_message("50,000 other sessions against 100: x %.2f\n", many / few);
    assert_true(many < 10 * few); /* 500 times as many: anything proportional to them shows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted_later_is_not_parked),
        cmocka_unit_test(what_is_accepted_during_a_cleanup_is_delivered),
        cmocka_unit_test(nothing_waits_for_what_a_cleanup_took),
        cmocka_unit_test(a_cut_cleanup_leaves_nobody_behind_what_it_took),
        cmocka_unit_test(a_cut_cleanup_leaves_nobody_waiting_for_what_it_took),
        cmocka_unit_test(a_cut_park_leaves_nobody_waiting_for_what_it_parked),
        cmocka_unit_test(the_rest_of_the_store_costs_a_workspace_nothing),
    };
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, 60000, 60000);
    walker = sync_store_open(server->socket, 60000, 60000);
    int failed = cmocka_run_group_tests_name("walks over workspaces", tests, NULL, NULL);

    sync_store_close(walker);
    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
