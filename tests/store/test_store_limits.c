/* Limits of a connection: time, number, servers that refuse, say nothing, or talk nonsense. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/store/support/conn_probe.h"
#include "tests/store/support/valkey_fixture.h"

/* A listening socket on a free port; nobody accepts. */
static int listen_on_free_port(char *url, size_t room)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(url, room, "valkey://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static void a_refused_connection_is_told_and_tried_again(void **state)
{
    char url[64];
    int fd = listen_on_free_port(url, sizeof(url));
    struct probe probe;

    (void)state;
    close(fd);
    const char *const urls[] = {url, "unix:///nonexistent/socket", "valkey://[::1]:1",
                                "valkey://host.invalid"};

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        /* Long before the time limit: told by the event, not by the limit. */
        probe_open(&probe,
                   &(struct store_conn_options){.url = urls[i], .connect_timeout_ms = 20000});
        PROBE_WAIT(&probe, probe.downs > 0);
        assert_int_equal(probe.why, STORE_AWAY);
        probe_close(&probe);
    }
}

static void a_server_that_appears_later_is_found(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct probe probe;

    (void)state;
    valkey_kill(valkey);
    probe_open(&probe, &(struct store_conn_options){.url = valkey->tcp_url});
    PROBE_WAIT(&probe, probe.downs > 0);
    valkey_restart(valkey);
    probe_wait_up(&probe);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void a_server_that_accepts_and_never_answers_is_given_up(void **state)
{
    char url[64];
    int fd = listen_on_free_port(url, sizeof(url));
    struct probe probe;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = url, .connect_timeout_ms = 50});
    PROBE_WAIT(&probe, probe.downs > 0);
    assert_int_equal(probe.why, STORE_TIMEOUT);
    int first = accept(fd, NULL, NULL), second;

    assert_true(first >= 0);
    PROBE_WAIT(&probe, (second = accept(fd, NULL, NULL)) >= 0); /* it tries again */
    probe_close(&probe);
    close(first);
    close(second);
    close(fd);
}

/* What servers may say instead of a handshake, and cut. */
static void nonsense_instead_of_a_handshake_is_survived(void **state)
{
    static const struct {
        const char *bytes;
        enum store_result why;
    } cases[] = {
        {"-ERR max number of clients reached\r\n",
         STORE_CUT}, /* in the place of CLIENT SETNAME's, whose answer does not count; then the end
                      */
        {"HTTP/1.1 400 Bad Request\r\n\r\n", STORE_CUT},
        {"+OK\r\n+OK\r\n", STORE_PROTOCOL},
        {"+OK\r\n-LOADING wait\r\n", STORE_LOADING},
        {"*-7\r\n", STORE_CUT},
        {"$-5\r\n", STORE_CUT},
        {"", STORE_CUT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char url[64];
        int fd = listen_on_free_port(url, sizeof(url)), peer;
        struct probe probe;

        probe_open(&probe, &(struct store_conn_options){.url = url});
        PROBE_WAIT(&probe, (peer = accept(fd, NULL, NULL)) >= 0);
        assert_int_equal(send(peer, cases[i].bytes, strlen(cases[i].bytes), MSG_NOSIGNAL),
                         strlen(cases[i].bytes));
        (void)shutdown(peer, SHUT_WR);
        PROBE_WAIT(&probe, probe.downs > 0);
        assert_int_equal(probe.why, cases[i].why);
        probe_close(&probe);
        close(peer);
        close(fd);
    }
}

/* hiredis alone would abort here. */
static void an_answer_that_nobody_asked_for_drops_the_connection(void **state)
{
    char url[64];
    int fd = listen_on_free_port(url, sizeof(url)), peer;
    struct probe probe;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = url});
    PROBE_WAIT(&probe, (peer = accept(fd, NULL, NULL)) >= 0);
    assert_int_equal(send(peer, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    char known[16 + SCRIPT_COUNT * 4];
    int len = snprintf(known, sizeof(known), "*%d\r\n", SCRIPT_COUNT);

    for (size_t i = 0; i < SCRIPT_COUNT; i++, len += 4) {
        memcpy(known + len, ":1\r\n", 4);
    }
    assert_int_equal(send(peer, known, (size_t)len, MSG_NOSIGNAL), len);
    probe_wait_up(&probe);
    assert_int_equal(send(peer, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    PROBE_WAIT(&probe, probe.downs > 0);
    assert_int_equal(probe.why, STORE_CUT);
    probe_close(&probe);
    close(peer);
    close(fd);
}

static void a_reset_connection_is_told(void **state)
{
    const struct linger at_once = {.l_onoff = 1};
    char url[64], byte;
    int fd = listen_on_free_port(url, sizeof(url)), peer;
    struct probe probe;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = url, .connect_timeout_ms = 20000});
    PROBE_WAIT(&probe, (peer = accept(fd, NULL, NULL)) >= 0);
    PROBE_WAIT(&probe, recv(peer, &byte, 1, MSG_DONTWAIT) == 1); /* it is in its handshake */
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(peer); /* RST */
    PROBE_WAIT(&probe, probe.downs > 0);
    assert_int_equal(probe.why, STORE_CUT);
    probe_close(&probe);
    close(fd);
}

static void a_late_answer_drops_the_connection(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer first = {0}, second = {0}, later;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .command_timeout_ms = 500});
    probe_wait_up(&probe);
    valkey_freeze(valkey);
    PROBE_SEND(&probe, &first, "PING");
    uint64_t start_ms = uv_hrtime() / 1000000;

    PROBE_WAIT(&probe, uv_hrtime() / 1000000 - start_ms > 250);
    PROBE_SEND(&probe, &second, "PING");
    PROBE_WAIT(&probe, first.count > 0 && second.count > 0);
    assert_int_equal(first.result, STORE_TIMEOUT);
    assert_true(second.result == STORE_CUT ||
                second.result == STORE_TIMEOUT); /* its own limit had not passed */
    assert_int_equal(first.count + second.count, 2);
    PROBE_WAIT(&probe, probe.downs > 0);
    valkey_thaw(valkey);
    probe_wait_up(&probe);
    PROBE_ASK(&probe, &later, "PING");
    assert_int_equal(later.result, STORE_OK);
    assert_int_equal(first.count + second.count, 2);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void a_paused_server_within_the_limit_is_waited_for(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answer;

    (void)state;
    probe_open(&probe,
               &(struct store_conn_options){.url = valkey->url, .command_timeout_ms = 20000});
    probe_wait_up(&probe);
    PROBE_ASK(&probe, &answer, "DEBUG", "SLEEP", "0.3");
    assert_int_equal(answer.result, STORE_OK);
    valkey_do(valkey, "CLIENT PAUSE 300 ALL");
    PROBE_ASK(&probe, &answer, "SET", "key", "value");
    assert_int_equal(answer.result, STORE_OK);
    assert_int_equal(probe.downs, 0);
    probe_close(&probe);
    valkey_stop(&valkey);
}

/* The bug of a naive limit: our own process was busy for longer, the answer lies in the socket, and
 * the timer is first. */
static void a_slow_client_does_not_take_its_own_slowness_for_a_timeout(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answer = {0};

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .command_timeout_ms = 100});
    probe_wait_up(&probe);
    for (int i = 1; i <= 5; i++) {
        PROBE_SEND(&probe, &answer, "PING");
        (void)uv_run(&probe.loop, UV_RUN_NOWAIT); /* written */
        usleep(150000);
        PROBE_WAIT(&probe, answer.count == i);
        assert_int_equal(answer.result, STORE_OK);
    }
    assert_int_equal(probe.downs, 0);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void more_than_the_bound_is_refused_without_being_sent(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answers[30] = {0};
    struct answer later;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .max_outstanding = 10});
    probe_wait_up(&probe);
    for (size_t i = 0; i < 30; i++) {
        PROBE_SEND(&probe, &answers[i], "INCR", "count");
    }
    assert_int_equal(store_conn_outstanding(probe.conn), 10);
    PROBE_WAIT(&probe, answers[9].count > 0 && answers[29].count > 0);
    for (size_t i = 0; i < 30; i++) {
        assert_int_equal(answers[i].count, 1);
        assert_int_equal(answers[i].result, i < 10 ? STORE_OK : STORE_FULL);
    }
    PROBE_ASK(&probe, &later, "GET", "count");
    assert_string_equal(later.text, "10");
    assert_int_equal(store_conn_outstanding(probe.conn), 0);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void a_child_process_does_not_inherit_the_connection(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct probe probe;
    bool was_open[256];
    int own = 0;

    (void)state;
    for (int fd = 0; fd < 256; fd++) {
        was_open[fd] = fcntl(fd, F_GETFD) >= 0; /* whoever started this test may have left some */
    }
    probe_open(&probe, &(struct store_conn_options){.url = valkey->tcp_url});
    probe_wait_up(&probe);
    for (int fd = 0; fd < 256; fd++) {
        int flags = was_open[fd] ? -1 : fcntl(fd, F_GETFD);

        assert_true(flags < 0 || (flags & FD_CLOEXEC));
        own += flags >= 0;
    }
    assert_true(own > 0);
    probe_close(&probe);
    valkey_stop(&valkey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_connection_is_told_and_tried_again),
        cmocka_unit_test(a_server_that_appears_later_is_found),
        cmocka_unit_test(a_server_that_accepts_and_never_answers_is_given_up),
        cmocka_unit_test(nonsense_instead_of_a_handshake_is_survived),
        cmocka_unit_test(an_answer_that_nobody_asked_for_drops_the_connection),
        cmocka_unit_test(a_reset_connection_is_told),
        cmocka_unit_test(a_late_answer_drops_the_connection),
        cmocka_unit_test(a_paused_server_within_the_limit_is_waited_for),
        cmocka_unit_test(a_slow_client_does_not_take_its_own_slowness_for_a_timeout),
        cmocka_unit_test(more_than_the_bound_is_refused_without_being_sent),
        cmocka_unit_test(a_child_process_does_not_inherit_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
