/* The supervisor's preflight against real servers: what passes, what is refused, what is waited
 * for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/base/log.h"
#include "supervisor/preflight.h"
#include "tests/store/support/valkey_fixture.h"

struct run {
    uv_loop_t loop;
    struct store *store;
    struct preflight preflight;
    enum preflight_verdict verdict;
    int verdicts, mends;
    struct valkey *valkey;
};

static void on_state(struct store *store, bool is_up, enum store_result why, void *arg)
{
    struct run *run = arg;

    (void)store;
    preflight_store_state(&run->preflight, is_up, why);
}

static void on_verdict(enum preflight_verdict verdict, void *arg)
{
    struct run *run = arg;

    run->verdict = verdict;
    run->verdicts++;
    store_close(run->store, NULL, NULL);
}

/* Changes what is refused, as the supervisor does with a server of its own. */
static bool mend(void *arg)
{
    struct run *run = arg;

    run->mends++;
    (void)valkey_do(run->valkey, "CONFIG SET appendfsync always");
    return true;
}

static enum preflight_verdict verdict_on(struct run *run, const char *url,
                                         enum durability_level level, int64_t timeout_ms,
                                         bool can_mend)
{
    const struct durability durability = {.level = level};
    const struct store_options options = {
        .url = url,
        .connections = 1,
        .max_outstanding = 100,
        .connect_timeout_ms = 1000,
        .command_timeout_ms = 1000,
        .durability = durability,
        .dedupe_ttl_ms = 1000,
        .lock_ttl_ms = 1000,
        .events_max = 100,
        .on_state = on_state,
        .arg = run,
    };
    struct preflight_options preflight = {
        .loop = &run->loop,
        .durability = durability,
        .advice = "start it",
        .url = url,
        .timeout_ms = timeout_ms,
        .mend = can_mend ? mend : NULL,
        .done = on_verdict,
        .arg = run,
    };

    run->verdicts = 0;
    assert_int_equal(uv_loop_init(&run->loop), 0);
    assert_int_equal(store_open(&run->loop, &options, &run->store), 0);
    preflight.store = run->store;
    preflight_start(&run->preflight, &preflight);
    uv_run(&run->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&run->loop), 0);
    assert_int_equal(run->verdicts, 1);
    return run->verdict;
}

static enum preflight_verdict verdict_of(struct valkey *valkey, enum durability_level level)
{
    struct run run = {.valkey = valkey};

    return verdict_on(&run, valkey->url, level, 20000, false);
}

static void a_durable_server_passes_and_passes_again(void **unused)
{
    struct valkey *valkey = valkey_start(NULL);

    (void)unused;
    assert_int_equal(verdict_of(valkey, DURABILITY_FSYNC), PREFLIGHT_PASSED);
    assert_int_equal(valkey_do(valkey, "HLEN outboxmeta"), 2);
    assert_int_equal(verdict_of(valkey, DURABILITY_EVERYSEC), PREFLIGHT_PASSED);
    valkey_stop(&valkey);
}

static void a_server_less_durable_than_configured_is_refused(void **unused)
{
    const struct valkey_options everysec = {.fsync = VALKEY_FSYNC_EVERYSEC},
                                off = {.fsync = VALKEY_AOF_OFF};
    struct valkey *valkey = valkey_start(&everysec);

    (void)unused;
    assert_int_equal(verdict_of(valkey, DURABILITY_FSYNC), PREFLIGHT_REFUSED);
    assert_int_equal(verdict_of(valkey, DURABILITY_EVERYSEC), PREFLIGHT_PASSED);
    valkey_stop(&valkey);
    valkey = valkey_start(&off);
    assert_int_equal(verdict_of(valkey, DURABILITY_EVERYSEC), PREFLIGHT_REFUSED);
    assert_int_equal(verdict_of(valkey, DURABILITY_MEMORY), PREFLIGHT_PASSED);
    valkey_stop(&valkey);
}

static void a_server_that_evicts_is_refused(void **unused)
{
    struct valkey *valkey = valkey_start(NULL);

    (void)unused;
    (void)valkey_do(valkey, "CONFIG SET maxmemory-policy allkeys-lru");
    assert_int_equal(verdict_of(valkey, DURABILITY_FSYNC), PREFLIGHT_REFUSED);
    valkey_stop(&valkey);
}

static void a_store_with_another_partition_count_is_not_ours(void **unused)
{
    struct valkey *valkey = valkey_start(NULL);

    (void)unused;
    (void)valkey_do(valkey, "HSET outboxmeta layout 1 partitions 32");
    assert_int_equal(verdict_of(valkey, DURABILITY_FSYNC), PREFLIGHT_NOT_OURS);
    assert_int_equal(valkey_do(valkey, "HLEN outboxmeta"), 2); /* nothing was overwritten */
    valkey_stop(&valkey);
}

static void a_missing_password_is_refused_at_once(void **unused)
{
    const struct valkey_options options = {.password = "secret"};
    struct valkey *valkey = valkey_start(&options);

    (void)unused;
    assert_int_equal(verdict_of(valkey, DURABILITY_FSYNC), PREFLIGHT_REFUSED);
    valkey_stop(&valkey);
}

static void a_server_that_is_not_there_is_unreachable(void **unused)
{
    struct run run = {0};

    (void)unused;
    assert_int_equal(
        verdict_on(&run, "unix:///nonexistent/store.sock", DURABILITY_FSYNC, 200, false),
        PREFLIGHT_UNREACHABLE);
}

static void a_server_that_comes_late_passes(void **unused)
{
    struct valkey *valkey = valkey_start(NULL);

    (void)unused;
    valkey_kill(valkey);
    valkey_launch(valkey);
    assert_int_equal(verdict_of(valkey, DURABILITY_FSYNC), PREFLIGHT_PASSED);
    valkey_stop(&valkey);
}

static void what_the_caller_can_mend_is_asked_again(void **unused)
{
    const struct valkey_options everysec = {.fsync = VALKEY_FSYNC_EVERYSEC};
    struct valkey *valkey = valkey_start(&everysec);
    struct run run = {.valkey = valkey};

    (void)unused;
    assert_int_equal(verdict_on(&run, valkey->url, DURABILITY_FSYNC, 20000, true),
                     PREFLIGHT_PASSED);
    assert_int_equal(run.mends, 1);
    valkey_stop(&valkey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_durable_server_passes_and_passes_again),
        cmocka_unit_test(a_server_less_durable_than_configured_is_refused),
        cmocka_unit_test(a_server_that_evicts_is_refused),
        cmocka_unit_test(a_store_with_another_partition_count_is_not_ours),
        cmocka_unit_test(a_missing_password_is_refused_at_once),
        cmocka_unit_test(a_server_that_is_not_there_is_unreachable),
        cmocka_unit_test(a_server_that_comes_late_passes),
        cmocka_unit_test(what_the_caller_can_mend_is_asked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
