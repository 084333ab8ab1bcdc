/* Every condition of the store, provoked on a real server: its typed result, and that the
 * connection survives it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "tests/store/support/conn_probe.h"
#include "tests/store/support/valkey_fixture.h"

#define WRITING_SCRIPT                                                                             \
    "#!lua\nredis.call('SET', KEYS[1], ARGV[1])\nreturn {KEYS[1], {ARGV[1], 7}}\n"
/* Without `#!lua` the server looks only when the write comes, and wraps what it then says. */
#define OLD_STYLE_SCRIPT "redis.call('SET', KEYS[1], ARGV[1])\nreturn {KEYS[1], {ARGV[1], 7}}\n"

static struct store_script load_script(struct valkey *valkey, const char *text)
{
    struct store_script script = {.name = "own", .text = text, .text_len = strlen(text)};
    redisReply *reply = valkey_command(valkey, "SCRIPT LOAD %s", text);

    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    memcpy(script.sha1, reply->str, sizeof(script.sha1));
    freeReplyObject(reply);
    return script;
}

static void open_up(struct probe *probe, struct valkey *valkey)
{
    probe_open(probe,
               &(struct store_conn_options){.url = valkey->url, .command_timeout_ms = 10000});
    probe_wait_up(probe);
}

static void ask_script(struct probe *probe, struct answer *answer,
                       const struct store_script *script, uint32_t replicas)
{
    *answer = (struct answer){0};
    probe_eval(probe, answer, script, "key", "value", replicas);
    PROBE_WAIT(probe, answer->count > 0);
}

/* A plain write and a script of either style get the result, and when it is over they go through
 * again. */
static void expect_refused(struct valkey *valkey, struct probe *probe, enum store_result expected)
{
    const struct store_script scripts[] = {load_script(valkey, WRITING_SCRIPT),
                                           load_script(valkey, OLD_STYLE_SCRIPT)};
    struct answer answer;

    PROBE_ASK(probe, &answer, "SET", "key", "value");
    assert_int_equal(answer.result, expected);
    assert_false(answer.has_reply);
    for (size_t i = 0; i < 2; i++) {
        ask_script(probe, &answer, &scripts[i], 0);
        assert_int_equal(answer.result, expected);
    }
    PROBE_ASK(probe, &answer, "EXISTS", "key");
    assert_true(expected == STORE_READONLY || answer.integer == 0);
}

static void expect_accepted(struct valkey *valkey, struct probe *probe)
{
    const struct store_script script = load_script(valkey, WRITING_SCRIPT);
    struct answer answer;

    ask_script(probe, &answer, &script, 0);
    assert_int_equal(answer.result, STORE_OK);
    assert_int_equal(probe->ups, 1);
    assert_int_equal(probe->downs, 0);
}

static void a_full_store_is_oom(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;

    (void)state;
    open_up(&probe, valkey);
    valkey_do(valkey, "CONFIG SET maxmemory 1");
    expect_refused(valkey, &probe, STORE_OOM);
    valkey_do(valkey, "CONFIG SET maxmemory 0");
    expect_accepted(valkey, &probe);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void a_replica_is_readonly_also_with_its_master_down(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    struct answer answer;

    (void)state;
    open_up(&probe, valkey);
    valkey_do(valkey, "REPLICAOF 127.0.0.1 1");
    expect_refused(valkey, &probe, STORE_READONLY);
    valkey_do(valkey, "CONFIG SET replica-serve-stale-data no");
    PROBE_ASK(&probe, &answer, "GET", "key"); /* MASTERDOWN */
    assert_int_equal(answer.result, STORE_READONLY);
    valkey_do(valkey, "REPLICAOF NO ONE");
    expect_accepted(valkey, &probe);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void too_few_replicas_for_the_server_is_readonly(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;

    (void)state;
    open_up(&probe, valkey);
    valkey_do(valkey, "CONFIG SET min-replicas-to-write 1");
    expect_refused(valkey, &probe, STORE_READONLY); /* NOREPLICAS */
    valkey_do(valkey, "CONFIG SET min-replicas-to-write 0");
    expect_accepted(valkey, &probe);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void wait_for_info(struct valkey *valkey, const char *text)
{
    bool found = false;

    for (int i = 0; i < 2000 && !found; i++) {
        redisReply *reply = valkey_command(valkey, "INFO");

        found = reply && reply->str && strstr(reply->str, text);
        freeReplyObject(reply);
        usleep(5000);
    }
    assert_true(found);
}

static void a_server_that_cannot_persist_is_misconf(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    struct probe probe;
    char path[128];

    (void)state;
    open_up(&probe, valkey);
    (void)snprintf(path, sizeof(path), "%s/dump.rdb", valkey->dir);
    assert_int_equal(mkdir(path, 0700),
                     0); /* so that the snapshot can't be renamed to it, not even by root */
    valkey_do(valkey, "CONFIG SET save %s", "3600 1000000");
    valkey_do(valkey, "BGSAVE");
    wait_for_info(valkey, "rdb_last_bgsave_status:err");
    expect_refused(valkey, &probe, STORE_MISCONF);
    valkey_do(valkey, "CONFIG SET stop-writes-on-bgsave-error no");
    expect_accepted(valkey, &probe);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void a_script_that_runs_too_long_is_busy(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    const struct store_script script = load_script(valkey, WRITING_SCRIPT);
    struct probe probe, other;
    struct answer answer = {0}, endless = {0}, killed;

    (void)state;
    open_up(&probe, valkey);
    probe_open(&other, &(struct store_conn_options){.url = valkey->url});
    probe_wait_up(&other);
    PROBE_SEND(&other, &endless, "EVAL", "while true do end", "0");
    (void)probe_turn(&other, uv_hrtime() / 1000000);
    while (answer.result != STORE_BUSY) { /* until the server has begun it, and then for 50 ms,
                                             others wait or go first */
        PROBE_ASK(&probe, &answer, "GET", "key");
        assert_true(answer.result == STORE_OK || answer.result == STORE_BUSY);
    }
    ask_script(&probe, &answer, &script, 0);
    assert_int_equal(answer.result, STORE_BUSY);
    PROBE_ASK(&probe, &killed, "SCRIPT", "KILL");
    assert_int_equal(killed.result, STORE_OK);
    PROBE_WAIT(&other, endless.count > 0);
    assert_int_equal(endless.result, STORE_ERROR);
    expect_accepted(valkey, &probe);
    probe_close(&other);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void a_missing_permission_is_noauth(void **state)
{
    struct valkey *valkey = valkey_start(&(struct valkey_options){.tcp = true});
    struct probe probe;
    struct answer answer;
    char url[128];

    (void)state;
    valkey_do(valkey, "ACL SETUSER weak on >pw ~* &* +@all -set");
    (void)snprintf(url, sizeof(url), "valkey://weak:pw@127.0.0.1:%d", valkey->port);
    probe_open(&probe, &(struct store_conn_options){.url = url});
    probe_wait_up(&probe);
    PROBE_ASK(&probe, &answer, "SET", "key", "value");
    assert_int_equal(answer.result, STORE_NOAUTH);
    probe_close(&probe);
    valkey_stop(&valkey);
}

/* While it loads, a server is not up; the reason is told once, and the connection comes up by
 * itself. */
static void a_loading_server_keeps_the_connection_down_until_it_is_done(void **state)
{
    static const char *const slowly[] = {"--key-load-delay", "300", NULL};
    struct valkey *valkey = valkey_start(&(struct valkey_options){.extra = slowly});
    struct probe probe;
    struct answer answer;

    (void)state;
    valkey_do(valkey, "EVAL %s 0", "for i = 1, 4000 do redis.call('SET', 'k' .. i, i) end");
    valkey_kill(valkey);
    valkey_launch(valkey);
    probe_open(&probe, &(struct store_conn_options){.url = valkey->url});
    PROBE_WAIT(&probe, probe.downs > 0 && probe.why == STORE_LOADING);
    PROBE_ASK(&probe, &answer, "PING");
    assert_int_equal(answer.result, STORE_AWAY);
    int downs = probe.downs;

    PROBE_WAIT(&probe, probe.ups > 0 || probe.downs > downs);
    assert_int_equal(probe.ups, 1);
    PROBE_ASK(&probe, &answer, "DBSIZE");
    assert_int_equal(answer.integer, 4000);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void without_a_replica_an_answer_is_not_durable(void **state)
{
    struct valkey *valkey = valkey_start(NULL);
    const struct store_script script = load_script(valkey, WRITING_SCRIPT);
    struct probe probe;
    struct answer answer;

    (void)state;
    probe_open(&probe, &(struct store_conn_options){.url = valkey->url, .command_timeout_ms = 400});
    probe_wait_up(&probe);
    ask_script(&probe, &answer, &script, 1);
    assert_int_equal(answer.result, STORE_NOT_DURABLE);
    assert_false(answer.has_reply);
    assert_int_equal(probe.downs, 0); /* WAIT's own limit came before ours */
    PROBE_ASK(&probe, &answer, "GET", "key");
    assert_string_equal(answer.text, "value");
    valkey_do(valkey, "CONFIG SET maxmemory 1");
    ask_script(&probe, &answer, &script, 1); /* the script's trouble wins over WAIT's */
    assert_int_equal(answer.result, STORE_OOM);
    probe_close(&probe);
    valkey_stop(&valkey);
}

static void with_a_replica_the_whole_answer_arrives(void **state)
{
    char port[16];
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
    struct valkey *primary = valkey_start(&(struct valkey_options){.tcp = true, .extra = at_once});

    (void)state;
    (void)snprintf(port, sizeof(port), "%d", primary->port);
    const char *const follow[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct valkey *replica = valkey_start(&(struct valkey_options){.extra = follow});
    const struct store_script script = load_script(primary, WRITING_SCRIPT);
    struct store_script failing =
        load_script(primary, "#!lua\nreturn redis.error_reply('SOME trouble')\n");
    struct probe probe;
    struct answer answer;

    wait_for_info(primary, "state=online");
    probe_open(&probe,
               &(struct store_conn_options){.url = primary->url, .command_timeout_ms = 2000});
    probe_wait_up(&probe);
    ask_script(&probe, &answer, &script, 1);
    assert_int_equal(answer.result, STORE_OK);
    assert_int_equal(answer.elements, 2); /* the script's answer, not WAIT's */
    ask_script(&probe, &answer, &failing, 1);
    assert_int_equal(answer.result, STORE_ERROR);
    assert_non_null(strstr(answer.text, "SOME trouble"));
    valkey_do(primary, "SCRIPT FLUSH");
    ask_script(&probe, &answer, &script, 1); /* reloaded and repeated, WAIT included */
    assert_int_equal(answer.result, STORE_OK);
    assert_int_equal(answer.elements, 2);
    valkey_freeze(replica);
    PROBE_ASK(&probe, &answer, "PING");
    ask_script(&probe, &answer, &script, 1);
    assert_int_equal(answer.result, STORE_NOT_DURABLE);
    probe_close(&probe);
    valkey_stop(&replica);
    valkey_stop(&primary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_store_is_oom),
        cmocka_unit_test(a_replica_is_readonly_also_with_its_master_down),
        cmocka_unit_test(too_few_replicas_for_the_server_is_readonly),
        cmocka_unit_test(a_server_that_cannot_persist_is_misconf),
        cmocka_unit_test(a_script_that_runs_too_long_is_busy),
        cmocka_unit_test(a_missing_permission_is_noauth),
        cmocka_unit_test(a_loading_server_keeps_the_connection_down_until_it_is_done),
        cmocka_unit_test(without_a_replica_an_answer_is_not_durable),
        cmocka_unit_test(with_a_replica_the_whole_answer_arrives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
