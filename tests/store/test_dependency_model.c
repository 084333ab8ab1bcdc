/* Dependencies, edits, removals, echoes, outcomes, parking, time and dying workers in random order
 * on a real server, beside an independent model (model/world.h); everything that must hold is
 * looked at after every step, and at the end the outbox must be empty. A failing run is shortened
 * and printed. Seeded: OUTBOX_SEED names the first, OUTBOX_SEEDS their number, OUTBOX_STEPS the
 * length of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/store/model/shrink.h"
#include "tests/store/support/valkey_fixture.h"

#define STEPS_MAX 10000

static struct sync_store *s;
static struct settings *settings;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void everything_holds_whatever_happens(void **state)
{
    const uint64_t first = number_from("OUTBOX_SEED", 1), seeds = number_from("OUTBOX_SEEDS", 60);
    static struct operation operations[STEPS_MAX];
    struct model_run run = {
        .s = s, .settings = settings, .steps = (int)number_from("OUTBOX_STEPS", 300)};

    (void)state;
    run.operations = operations;
    assert_in_range(run.steps, 1, STEPS_MAX);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (!run_drawn(&run, seed)) {
            print_error("seed %llu: %s\n", (unsigned long long)seed, run.why);
            run_shrink(&run);
            fail_msg("seed %llu: %s", (unsigned long long)seed, run.why);
        }
    }
    for (int i = 0; i < OPERATION_COUNT; i++) {
        if (seeds >= 10 && run.applied[i] == 0) {
            fail_msg("operation %d was never carried out", i);
        }
    }
}

int main(void)
{
    static const struct valkey_options options = {.fsync = VALKEY_AOF_OFF};
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_holds_whatever_happens)};
    struct valkey *server = valkey_start(&options);
    const int64_t an_hour_ms = 3600000;

    settings = sync_settings(model_configuration);
    s = sync_store_open(server->socket, 2 * an_hour_ms, 2 * an_hour_ms);
    /* Every wait is an hour: over when the test says so. */
    sync_limits.retry_backoff_ms = sync_limits.max_backoff_ms = an_hour_ms;
    sync_limits.verify_delay_ms = sync_limits.repoll_after_ms = an_hour_ms;
    sync_limits.verify_backoff_ms = sync_limits.max_verify_backoff_ms = an_hour_ms;
    const int failed = cmocka_run_group_tests_name("dependency model", tests, NULL, NULL);

    sync_store_close(s);
    settings_destroy(&settings);
    valkey_stop(&server);
    return failed;
}
