/* One connection against a real server: connecting in every way, losing it, scripts forgotten,
 * callbacks that act. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "tests/store/support/conn_probe.h"
#include "tests/store/support/valkey_fixture.h"

/* Returns {KEYS[1], ARGV[1]} after writing; its SHA-1 is checked by the test that loads it. */
static const struct store_script own_script = {
    .name = "own",
    .text = "#!lua\nredis.call('SET', KEYS[1], ARGV[1])\nreturn {KEYS[1], {ARGV[1], 7}}\n",
    .text_len =
        sizeof("#!lua\nredis.call('SET', KEYS[1], ARGV[1])\nreturn {KEYS[1], {ARGV[1], 7}}\n") - 1,
    .sha1 = "OWN_SHA1",
};

static void open_on(struct probe *probe, const char *url)
{
    probe_open(probe, &(struct store_conn_options){.url = url});
}

static void a_unix_socket_is_connected_and_answers(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answer;

    (void)state;
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    assert_int_equal(probe.ups, 1);
    assert_int_equal(probe.downs, 0);
    PROBE_ASK(&probe, &answer, "SET", "key", "");
    assert_int_equal(answer.result, STORE_OK);
    PROBE_ASK(&probe, &answer, "STRLEN", "key");
    assert_int_equal(answer.integer, 0);
    PROBE_ASK(&probe, &answer, "CLIENT", "GETNAME");
    assert_string_equal(answer.text, "outboxd");
    PROBE_ASK(&probe, &answer, "SCRIPT", "EXISTS", store_scripts[0].sha1);
    assert_int_equal(answer.elements, 1);
    PROBE_ASK(&probe, &answer, "NOSUCHCOMMAND");
    assert_int_equal(answer.result, STORE_ERROR);
    assert_true(answer.has_reply);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void tcp_is_connected_by_name_and_by_number(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct probe probe;
    struct answer answer;
    char by_name[64];

    (void)state;
    (void)snprintf(by_name, sizeof(by_name), "redis://localhost:%d/0", valkey->port);
    const char *const urls[] = {valkey->tcp_url, by_name};

    for (size_t i = 0; i < 2; i++) {
        open_on(&probe, urls[i]);
        probe_wait_up(&probe);
        PROBE_ASK(&probe, &answer, "PING");
        assert_int_equal(answer.result, STORE_OK);
        probe_close(&probe);
    }
    valkey_stop(&valkey);
}

static void the_right_password_is_let_in_and_the_wrong_one_told(void **state)
{
    struct valkey *valkey =
        valkey_start(&(struct valkey_options){.tcp = true, .password = "s3cret"});
    struct probe probe;
    struct answer answer;
    char url[160];

    (void)state;
    valkey_do(valkey, "ACL SETUSER ob on ~* &* +@all");
    (void)snprintf(url, sizeof(url), "valkey://ob:p%%40ss%%3Aw@127.0.0.1:%d", valkey->port);
    valkey_do(valkey, "ACL SETUSER ob resetpass >p@ss:w");
    open_on(&probe, url); /* user and password of the URL, escaped */
    probe_wait_up(&probe);
    PROBE_ASK(&probe, &answer, "ACL", "WHOAMI");
    assert_string_equal(answer.text, "ob");
    probe_close(&probe);

    probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .password = "s3cret"});
    probe_wait_up(&probe);
    probe_close(&probe);

    const char *const wrong[] = {NULL, "guess"};

    for (size_t i = 0; i < 2; i++) {
        probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .password = wrong[i]});
        PROBE_WAIT(&probe, probe.downs > 0);
        assert_int_equal(probe.why, STORE_NOAUTH);
        PROBE_ASK(&probe, &answer, "PING");
        assert_int_equal(answer.result, STORE_AWAY);
        assert_int_equal(probe.downs, 1); /* told once, though it goes on trying */
        probe_close(&probe);
    }
    valkey_stop(&valkey);
}

static void a_password_where_the_server_has_none_is_refused(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .password = "unneeded"});
    PROBE_WAIT(&probe, probe.downs > 0);
    assert_int_equal(probe.why, STORE_NOAUTH);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void the_database_of_the_url_is_selected(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct probe probe;
    struct answer answer;
    char urls[2][160];

    (void)state;
    (void)snprintf(urls[0], sizeof(urls[0]), "%s?db=3", valkey->url);
    (void)snprintf(urls[1], sizeof(urls[1]), "%s/3", valkey->tcp_url);
    for (size_t i = 0; i < 2; i++) {
        open_on(&probe, urls[i]);
        probe_wait_up(&probe);
        PROBE_ASK(&probe, &answer, "INCR", "in_three");
        assert_int_equal(answer.integer, (int)i + 1);
        probe_close(&probe);
    }
    assert_int_equal(valkey_do(valkey, "EXISTS in_three"), 0);
    valkey_stop(&valkey);
}

static void a_killed_server_cuts_calls_and_is_found_again(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answers[20] = {0};
    struct answer later;

    (void)state;
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    PROBE_ASK(&probe, &later, "SET", "kept", "yes");
    valkey_freeze(valkey);
    for (size_t i = 0; i < 20; i++) {
        PROBE_SEND(&probe, &answers[i], "PING");
    }
    probe_turn(&probe, uv_hrtime() / 1000000); /* they are written, and nobody answers */
    assert_int_equal(store_conn_outstanding(probe.conn), 20);
    valkey_kill(valkey);
    PROBE_WAIT(&probe, answers[19].count > 0);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(answers[i].count, 1);
        assert_int_equal(answers[i].result, STORE_CUT);
    }
    assert_int_equal(store_conn_outstanding(probe.conn), 0);
    PROBE_WAIT(&probe, probe.downs > 0);
    PROBE_ASK(&probe, &later, "PING");
    assert_int_equal(later.result, STORE_AWAY);
    valkey_restart(valkey);
    probe_wait_up(&probe);
    PROBE_ASK(&probe, &later, "GET", "kept");
    assert_string_equal(later.text, "yes");
    assert_int_equal(probe.ups, 2);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void scripts_that_the_server_forgot_are_loaded_again(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct store_script script = own_script;
    struct probe probe;
    struct answer answers[30] = {0};
    struct answer plain;

    (void)state;
    struct redisReply *reply = valkey_command(valkey, "SCRIPT LOAD %s", script.text);

    memcpy(script.sha1, reply->str, sizeof(script.sha1));
    freeReplyObject(reply);
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    for (int round = 0; round < 2; round++) {
        valkey_do(valkey, "SCRIPT FLUSH");
        memset(answers, 0, sizeof(answers));
        for (size_t i = 0; i < 30; i++) {
            char argument[16];

            (void)snprintf(argument, sizeof(argument), "%zu", i);
            probe_eval(&probe, &answers[i], &script, "key", argument, 0);
        }
        PROBE_WAIT(&probe, answers[29].count > 0);
        for (size_t i = 0; i < 30; i++) {
            assert_int_equal(answers[i].count, 1);
            assert_int_equal(answers[i].result, STORE_OK);
            assert_int_equal(answers[i].elements, 2);
        }
        PROBE_ASK(&probe, &plain, "GET", "key");
        assert_string_equal(plain.text, "29"); /* repeated in their order */
    }
    assert_int_equal(store_conn_outstanding(probe.conn), 0);

    /* One of the embedded scripts: thirty calls, but its text is sent once. */
    valkey_do(valkey, "SCRIPT FLUSH");
    valkey_do(valkey, "CONFIG RESETSTAT");
    memset(answers, 0, sizeof(answers));
    for (size_t i = 0; i < 30; i++) {
        probe_eval(&probe, &answers[i], &store_scripts[SCRIPT_COUNTS], "outboxstat:{5}", "5", 0);
    }
    PROBE_WAIT(&probe, answers[29].count > 0);
    assert_int_not_equal(answers[29].result, STORE_PROTOCOL);
    reply = valkey_command(valkey, "INFO commandstats");
    assert_non_null(strstr(reply->str, "cmdstat_script|load:calls=1,"));
    freeReplyObject(reply);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static size_t loads(struct valkey *valkey)
{
    struct redisReply *reply = valkey_command(valkey, "INFO commandstats");
    const char *stands = strstr(reply->str, "cmdstat_script|load:calls=");
    const size_t count =
        stands ? strtoul(stands + strlen("cmdstat_script|load:calls="), NULL, 10) : 0;

    freeReplyObject(reply);
    return count;
}

static void a_connection_loads_only_what_the_server_does_not_know(void **state)
{
    static const char *const forbidden[] = {"+@all", "-script|exists"};
    static const size_t expected[] = {0, SCRIPT_COUNT};
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;

    (void)state;
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    assert_int_equal(loads(valkey), SCRIPT_COUNT);
    probe_close(&probe);
    for (size_t i = 0; i < 2; i++) {
        valkey_do(valkey, "ACL SETUSER default %s", forbidden[i]);
        valkey_do(valkey, "CONFIG RESETSTAT");
        open_on(&probe, valkey->url);
        probe_wait_up(&probe);
        assert_int_equal(loads(valkey), expected[i]);
        probe_close(&probe);
    }
    valkey_stop(&valkey);
}

static void a_script_whose_name_is_never_known_is_an_error_and_no_loop(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct store_script script = own_script;
    struct probe probe;
    struct answer answer = {0};

    (void)state;
    memset(script.sha1, 'f', 40);
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    probe_eval(&probe, &answer, &script, "key", "x", 0);
    PROBE_WAIT(&probe, answer.count > 0);
    assert_int_equal(answer.result, STORE_ERROR);
    assert_non_null(strstr(answer.text, "NOSCRIPT"));
    probe_close(&probe);
    valkey_stop(&valkey);
}

/* A callback that calls again, and after ten times closes the connection with calls outstanding. */
struct chain {
    struct probe *probe;
    int left, answered, cut;
};

static void on_chain_closed(void *arg)
{
    struct probe *probe = arg;

    probe->is_closed = true;
}

static void on_chain(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct chain *chain = arg;
    const struct span ping[] = {{"PING", 4}};

    (void)reply;
    chain->answered += result == STORE_OK;
    chain->cut += result == STORE_CUT || result == STORE_AWAY;
    if (chain->left == 0 || result != STORE_OK) {
        return;
    }
    chain->left--;
    for (int i = 0; i < 3; i++) {
        store_conn_command(chain->probe->conn, 1, ping, on_chain, chain);
    }
    if (chain->left == 0) {
        store_conn_close(chain->probe->conn, on_chain_closed, chain->probe);
        store_conn_command(chain->probe->conn, 1, ping, on_chain, chain);
        chain->probe->conn = NULL;
    }
}

static void callbacks_may_call_again_and_close(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct chain chain = {.probe = &probe, .left = 10};
    const struct span ping[] = {{"PING", 4}};

    (void)state;
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    store_conn_command(probe.conn, 1, ping, on_chain, &chain);
    PROBE_WAIT(&probe, probe.is_closed);
    assert_int_equal(chain.answered + chain.cut, 1 + 3 * 10 + 1); /* each exactly once */
    assert_true(chain.cut >= 4);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void close_on_state(struct store_conn *conn, bool is_up, enum store_result why, void *arg)
{
    struct probe *probe = arg;

    (void)why;
    (void)is_up;
    probe->ups++;
    store_conn_close(conn, on_chain_closed, probe);
    probe->conn = NULL;
}

static void on_state_may_close(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    const char *const urls[] = {valkey->url, "unix:///nonexistent/socket"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        probe_open(&probe, &(struct store_conn_options){
                               .url = urls[i], .on_state = close_on_state, .arg = &probe});
        PROBE_WAIT(&probe, probe.is_closed);
        assert_int_equal(probe.ups, 1);
        probe_close(&probe);
    }
    valkey_stop(&valkey);
}

static void closing_at_once_and_with_calls_outstanding_is_clean(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct probe probe;
    struct answer answers[50] = {0};
    char by_name[64];

    (void)state;
    (void)snprintf(by_name, sizeof(by_name), "valkey://localhost:%d", valkey->port);
    const char *const urls[] = {valkey->url, valkey->tcp_url, by_name};

    for (size_t i = 0; i < 3; i++) {
        for (int turns = 0; turns < 6; turns++) { /* closed in each of its states */
            open_on(&probe, urls[i]);
            for (int turn = 0; turn < turns; turn++) {
                probe_turn(&probe, uv_hrtime() / 1000000);
            }
            probe_close(&probe);
        }
    }
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    for (size_t i = 0; i < 50; i++) {
        PROBE_SEND(&probe, &answers[i], "PING");
    }
    probe_close(&probe);
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(answers[i].count, 1);
        assert_int_equal(answers[i].result, STORE_CUT);
    }
    valkey_stop(&valkey);
}

static void many_calls_of_a_turn_go_out_in_one_write_and_big_ones_arrive(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answers[200] = {0};
    struct answer big = {0};
    const size_t size = 8u << 20; /* more than a socket takes at once */
    char *bytes = malloc(size);

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'x', size);
    open_on(&probe, valkey->url);
    probe_wait_up(&probe);
    const struct span set[] = {{"SET", 3}, {"big", 3}, {bytes, size}};

    store_conn_command(probe.conn, 3, set, probe_on_reply, &big);
    PROBE_WAIT(&probe, big.count > 0);
    assert_int_equal(big.result, STORE_OK);
    PROBE_ASK(&probe, &big, "STRLEN", "big");
    assert_int_equal(big.integer, (int)size);
    PROBE_ASK(&probe, &big, "GET", "big");
    assert_int_equal(big.result, STORE_OK);

    valkey_do(valkey, "CONFIG RESETSTAT");
    for (size_t i = 0; i < 200; i++) {
        PROBE_SEND(&probe, &answers[i], "PING");
    }
    PROBE_WAIT(&probe, answers[199].count > 0);
    struct redisReply *reply = valkey_command(valkey, "INFO stats");
    const char *reads = strstr(reply->str, "total_reads_processed:");

    assert_non_null(reads); /* ours, and those of the fixture itself */
    assert_true(strtol(reads + strlen("total_reads_processed:"), NULL, 10) < 10);
    freeReplyObject(reply);
    probe_close(&probe);
    valkey_stop(&valkey);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unix_socket_is_connected_and_answers),
        cmocka_unit_test(tcp_is_connected_by_name_and_by_number),
        cmocka_unit_test(the_right_password_is_let_in_and_the_wrong_one_told),
        cmocka_unit_test(a_password_where_the_server_has_none_is_refused),
        cmocka_unit_test(the_database_of_the_url_is_selected),
        cmocka_unit_test(a_killed_server_cuts_calls_and_is_found_again),
        cmocka_unit_test(scripts_that_the_server_forgot_are_loaded_again),
        cmocka_unit_test(a_connection_loads_only_what_the_server_does_not_know),
        cmocka_unit_test(a_script_whose_name_is_never_known_is_an_error_and_no_loop),
        cmocka_unit_test(callbacks_may_call_again_and_close),
        cmocka_unit_test(on_state_may_close),
        cmocka_unit_test(closing_at_once_and_with_calls_outstanding_is_clean),
        cmocka_unit_test(many_calls_of_a_turn_go_out_in_one_write_and_big_ones_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
