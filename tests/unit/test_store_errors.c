/* Which result an error reply stands for, which URLs can be used, what makes a server durable
 * enough. Pure. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/store.h"
#include "common/store/store_tls.h"
#include "common/store/store_url.h"

static enum store_result read_error(const char *text)
{
    return store_result_from_error(text, strlen(text));
}

static void code_words_are_found_anywhere_in_the_head(void **state)
{
    static const struct {
        const char *text;
        enum store_result result;
    } rows[] = {
        {"LOADING Valkey is loading the dataset in memory", STORE_LOADING},
        {"READONLY You can't write against a read only replica.", STORE_READONLY},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
         STORE_READONLY},
        {"NOREPLICAS Not enough good replicas to write.", STORE_READONLY},
        {"OOM command not allowed when used memory > 'maxmemory'.", STORE_OOM},
        {"MISCONF Valkey is configured to save RDB snapshots", STORE_MISCONF},
        {"BUSY Valkey is busy running a script.", STORE_BUSY},
        {"NOAUTH Authentication required.", STORE_NOAUTH},
        {"ERR Protocol error: unauthenticated bulk length", STORE_NOAUTH},
        {"WRONGPASS invalid username-password pair or user is disabled.", STORE_NOAUTH},
        {"NOPERM User weak has no permissions to run the 'set' command", STORE_NOAUTH},
        {"ERR Error running script (call to f_0123abcd): @user_script:1: @user_script: 1: "
         "-READONLY You can't write",
         STORE_READONLY},
        {"ERR OOM command not allowed script: 0123, on @user_script:5.", STORE_OOM},
        {"ERR 0123 script: 77, @user_script: 5: OOM command not allowed", STORE_OOM},
        {"-OOM", STORE_OOM},
        {"proxy: upstream said (LOADING)", STORE_LOADING},
        {"OOM and BUSY: the first one counts", STORE_OOM},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(read_error(rows[i].text), rows[i].result);
    }
}

static void parts_of_words_and_lower_case_are_no_code_words(void **state)
{
    static const char *const texts[] = {
        "",
        "ERR",
        "BUSYKEY Target key name already exists.",
        "BUSYGROUP Consumer Group name already exists",
        "ERR the server is busy, loading, readonly, oom",
        "ERR XOOM OOMX OOM_ _OOM 1OOM OOM1",
        "NOSCRIPT No matching script.",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(read_error(texts[i]), STORE_ERROR);
    }
}

static void only_the_head_is_looked_at(void **state)
{
    char text[300];

    (void)state;
    memset(text, ' ', sizeof(text));
    memcpy(text + 253, "OOM", 3);
    assert_int_equal(store_result_from_error(text, sizeof(text)), STORE_OOM);
    assert_int_equal(store_result_from_error(text, 255), STORE_ERROR); /* cut off */
    memset(text, ' ', sizeof(text));
    memcpy(text + 254, "OOM", 3);
    assert_int_equal(store_result_from_error(text, sizeof(text)), STORE_ERROR);
}

static void a_word_cut_by_the_head_is_no_code_word(void **state)
{
    char text[300];

    (void)state;
    memset(text, ' ', sizeof(text));
    memcpy(text + 252, "BUSYKEY", 7); /* the head ends after BUSY */
    assert_int_equal(store_result_from_error(text, sizeof(text)), STORE_ERROR);
}

static void every_result_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < STORE_RESULT_COUNT; i++) {
        assert_true(strlen(store_result_name((enum store_result)i)) > 0);
        assert_true(strlen(store_result_help((enum store_result)i)) > 0);
    }
    assert_string_equal(store_result_name((enum store_result)STORE_RESULT_COUNT), "invalid");
}

static void expect_text(const char *text, const char *expected)
{
    if (!expected) {
        assert_null(text);
    } else {
        assert_non_null(text);
        assert_string_equal(text, expected);
    }
}

static void urls_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        struct {
            const char *path, *host, *port, *user, *password;
            uint32_t db;
        } url;
    } rows[] = {
        {"unix:///run/v.sock", {.path = "/run/v.sock"}},
        {"unix://:p%40ss@/run/v.sock", {.path = "/run/v.sock", .password = "p@ss"}},
        {"unix://u:p@/run/v.sock?db=7",
         {.path = "/run/v.sock", .user = "u", .password = "p", .db = 7}},
        {"unix:///run/a%20b?db=7", {.path = "/run/a b", .db = 7}},
        {"valkey://host", {.host = "host", .port = "6379"}},
        {"redis://host:1/", {.host = "host", .port = "1"}},
        {"valkey://127.0.0.1:65535/15", {.host = "127.0.0.1", .port = "65535", .db = 15}},
        {"valkey://[::1]:7000", {.host = "::1", .port = "7000"}},
        {"valkey://[fe80::1]", {.host = "fe80::1", .port = "6379"}},
        {"valkey://ob@host", {.user = "ob", .host = "host", .port = "6379"}},
        {"valkey://:pw@host", {.password = "pw", .host = "host", .port = "6379"}},
        {"valkey://o%3Ab:p%40:w@host:2/3",
         {.user = "o:b", .password = "p@:w", .host = "host", .port = "2", .db = 3}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_url url;
        const char *reason = NULL;

        assert_int_equal(store_url_parse(rows[i].text, &url, &reason), 0);
        expect_text(url.path, rows[i].url.path);
        expect_text(url.host, rows[i].url.host);
        expect_text(url.port, rows[i].url.port);
        expect_text(url.user, rows[i].url.user);
        expect_text(url.password, rows[i].url.password);
        assert_int_equal(url.db, rows[i].url.db);
        store_url_done(&url);
    }
}

static void unusable_urls_are_refused_with_a_reason(void **state)
{
    static const char *const urls[] = {
        "",
        "host:6379",
        "http://host",
        "unix://relative",
        "unix://relative@",
        "unix://u:%zz@/run/s",
        "unix:///",
        "unix:///run/s?database=1",
        "unix:///run/s?db=",
        "unix:///run/s?db=-1",
        "unix:///run/s?db=12x",
        "valkey://",
        "valkey://user@",
        "valkey://:6379",
        "valkey://host:",
        "valkey://host:0",
        "valkey://host:65536",
        "valkey://host:99999999999999999999",
        "valkey://host:+5",
        "valkey://host:6379x",
        "valkey://host/x",
        "valkey://host/10000",
        "valkey://[::1",
        "valkey://[::1]7000",
        "valkey://us%er@host",
        "valkey://us%4@host",
        "valkey://us%00er@host",
    };
    char too_long[200];

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        const char *reason = NULL;

        assert_int_equal(store_url_check(urls[i], &reason), -EINVAL);
        assert_non_null(reason);
    }
    const char *reason = NULL;

    memset(too_long, 'x', sizeof(too_long));
    memcpy(too_long, "unix:///", 8);
    too_long[8 + 107 - 1 + 1] = '\0'; /* a path of 108 bytes, the leading / included */
    assert_int_equal(store_url_check(too_long, &reason), -EINVAL);
    too_long[8 + 107 - 1] = '\0';
    assert_int_equal(store_url_check(too_long, &reason), 0);
}

static void tls_is_taken_where_it_is_built_in_and_refused_with_a_way_where_not(void **state)
{
    static const char *const good[] = {"valkeys://host", "rediss://u:p@host:7000/2",
                                       "valkeys://[::1]/?"};
    static const char *const bad[] = {
        "valkeys://",           "valkeys://host?x=1",
        "valkeys://host?ca=",   "valkeys://host?ca",
        "valkeys://host?key=k", "valkeys://host?ca=a&ca=b",
        "valkeys://host?c%zz",  "valkeys://host?ca=/no/such/file",
    };
    const char *reason = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (store_tls_is_built()) {
            assert_int_equal(store_url_check(good[i], &reason), 0);
        } else {
            assert_int_equal(store_url_check(good[i], &reason), -EINVAL);
            assert_non_null(strstr(reason, "stunnel"));
        }
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(store_url_check(bad[i], &reason), -EINVAL);
    }
    assert_int_equal(store_url_check("valkey://host?ca=/x", &reason), -EINVAL);
}

static void servers_that_are_not_durable_enough_are_refused_by_name_of_the_setting(void **state)
{
    const struct server_facts good = {
        .aof_enabled = true, .appendfsync = "always", .maxmemory_policy = "noeviction"};
    const struct durability fsync = {.level = DURABILITY_FSYNC},
                            everysec = {.level = DURABILITY_EVERYSEC},
                            memory = {.level = DURABILITY_MEMORY},
                            replicas = {.level = DURABILITY_REPLICAS, .replicas = 2};
    struct server_facts facts = good;

    (void)state;
    assert_null(store_facts_refusal(&good, fsync));
    assert_null(store_facts_refusal(&good, everysec));
    assert_null(store_facts_refusal(&good, memory));
    assert_non_null(strstr(store_facts_refusal(&good, replicas), "replicas"));
    facts.connected_replicas = 2;
    assert_null(store_facts_refusal(&facts, replicas));

    facts = good;
    facts.aof_enabled = false;
    assert_non_null(strstr(store_facts_refusal(&facts, fsync), "CONFIG SET appendonly yes"));
    assert_non_null(store_facts_refusal(&facts, everysec));
    assert_non_null(store_facts_refusal(&facts, replicas));
    assert_null(store_facts_refusal(&facts, memory));

    facts = good;
    memcpy(facts.maxmemory_policy, "allkeys-lru", sizeof("allkeys-lru"));
    assert_non_null(
        strstr(store_facts_refusal(&facts, fsync), "CONFIG SET maxmemory-policy noeviction"));
    assert_null(store_facts_refusal(&facts, memory));

    facts = good;
    memcpy(facts.appendfsync, "everysec", sizeof("everysec"));
    assert_non_null(strstr(store_facts_refusal(&facts, fsync), "CONFIG SET appendfsync always"));
    assert_null(store_facts_refusal(&facts, everysec));

    facts = good;
    facts.is_replica = true;
    assert_non_null(strstr(store_facts_refusal(&facts, memory), "replica"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_words_are_found_anywhere_in_the_head),
        cmocka_unit_test(parts_of_words_and_lower_case_are_no_code_words),
        cmocka_unit_test(only_the_head_is_looked_at),
        cmocka_unit_test(a_word_cut_by_the_head_is_no_code_word),
        cmocka_unit_test(every_result_has_a_name_and_a_sentence),
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(unusable_urls_are_refused_with_a_reason),
        cmocka_unit_test(tls_is_taken_where_it_is_built_in_and_refused_with_a_way_where_not),
        cmocka_unit_test(servers_that_are_not_durable_enough_are_refused_by_name_of_the_setting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
