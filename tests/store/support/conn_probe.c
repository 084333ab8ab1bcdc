/* One connection under test with its own loop. */
#include "tests/store/support/conn_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#define HOPELESS_MS 30000
#define WORDS_MAX   16

static void on_state(struct store_conn *conn, bool is_up, enum store_result why, void *arg)
{
    struct probe *probe = arg;

    assert_true(is_up == store_conn_is_up(conn));
    probe->ups += is_up;
    probe->downs += !is_up;
    probe->why = why;
}

static void on_alarm(uv_timer_t *alarm)
{
    (void)alarm;
}

void probe_open(struct probe *probe, const struct store_conn_options *options)
{
    struct store_conn_options all = *options;

    *probe = (struct probe){0};
    all.max_outstanding = all.max_outstanding ? all.max_outstanding : 1000;
    all.connect_timeout_ms = all.connect_timeout_ms ? all.connect_timeout_ms : 5000;
    all.reconnect_min_ms = all.reconnect_min_ms ? all.reconnect_min_ms : 10;
    all.reconnect_max_ms = all.reconnect_max_ms ? all.reconnect_max_ms : 100;
    all.on_state = all.on_state ? all.on_state : on_state;
    all.arg = all.arg ? all.arg : probe;
    assert_int_equal(uv_loop_init(&probe->loop), 0);
    assert_int_equal(uv_timer_init(&probe->loop, &probe->alarm), 0);
    assert_int_equal(store_conn_open(&probe->loop, &all, &probe->conn), 0);
    assert_false(store_conn_is_up(probe->conn));
}

static void on_closed(void *arg)
{
    struct probe *probe = arg;

    assert_false(probe->is_closed);
    probe->is_closed = true;
}

void probe_close(struct probe *probe)
{
    if (probe->conn) {
        store_conn_close(probe->conn, on_closed, probe);
        assert_false(probe->is_closed);
        PROBE_WAIT(probe, probe->is_closed);
    }
    uv_close((uv_handle_t *)&probe->alarm, NULL);
    (void)uv_run(&probe->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&probe->loop), 0);
}

void probe_turn(struct probe *probe, uint64_t started_ms)
{
    if (uv_hrtime() / 1000000 - started_ms > HOPELESS_MS) {
        fail_msg("nothing happened in %d ms (up %d times, down %d times, last: %s)", HOPELESS_MS,
                 probe->ups, probe->downs, store_result_name(probe->why));
    }
    (void)uv_timer_start(&probe->alarm, on_alarm, 50, 0);
    (void)uv_run(&probe->loop, UV_RUN_ONCE);
    uv_timer_stop(&probe->alarm);
}

void probe_wait_up(struct probe *probe)
{
    PROBE_WAIT(probe, store_conn_is_up(probe->conn));
}

void probe_on_reply(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct answer *answer = arg;

    answer->count++;
    answer->result = result;
    answer->has_reply = reply != NULL;
    if (!reply) {
        return;
    }
    answer->type = reply->type;
    answer->integer = reply->integer;
    answer->elements = reply->elements;
    if (reply->str) {
        size_t len = reply->len < sizeof(answer->text) ? reply->len : sizeof(answer->text) - 1;

        memcpy(answer->text, reply->str, len);
        answer->text[len] = '\0';
    }
}

void probe_send(struct probe *probe, struct answer *answer, const char *const *words)
{
    struct span argv[WORDS_MAX];
    size_t argc = 0;

    for (; words[argc] && argc < WORDS_MAX; argc++) {
        argv[argc] = span_of(words[argc]);
    }
    int before = answer->count;

    store_conn_command(probe->conn, argc, argv, probe_on_reply, answer);
    assert_int_equal(answer->count, before); /* never before the call returned */
}

void probe_eval(struct probe *probe, struct answer *answer, const struct store_script *script,
                const char *key, const char *argument, uint32_t replicas)
{
    const struct span argv[] = {span_of(argument)};

    store_conn_eval(probe->conn, script, span_of(key), 1, argv, replicas, probe_on_reply, answer);
}
