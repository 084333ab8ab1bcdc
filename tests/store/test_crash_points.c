/* Every crash point: programs of store calls (workers, their supervisor, people, clients) on a
 * scene of two entries, alone and two at a time, in every order of their steps; each may die at any
 * step, or lose its connection at it, and its command may arrive late. After every step of every
 * order everything is stopped, recovered as at a restart and driven to its end, and what the
 * contract promises is checked.
 *
 * All scenarios take hours: the test tries some of them, drawn by OUTBOXD_CRASH_SEED (1).
 * OUTBOXD_CRASH tries so many times as many, or `all`. What fails is printed with the way to repeat
 * it: OUTBOXD_CRASH_REPLAY. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/crash/explore.h"

static struct run *run;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Whether this test tries the scenario of that number: one in `share` of them. */
static bool is_drawn(uint64_t number, uint64_t share)
{
    const char *text = getenv("OUTBOXD_CRASH");
    const uint64_t times = number_from("OUTBOXD_CRASH", 1);
    uint64_t drawn = (number_from("OUTBOXD_CRASH_SEED", 1) << 32) + number + 1;

    if (text && strcmp(text, "all") == 0) {
        return true;
    }
    for (int i = 0; i < 3; i++) { /* neighbours shall have nothing in common */
        drawn = (drawn ^ (drawn >> 31)) * 0x9e3779b97f4a7c15U;
    }
    return (drawn >> 32) % share < times;
}

struct tally {
    struct explored counted;
    uint64_t scenarios, all, failures;
};

static void try(struct tally *tally, const struct scenario *scenario, uint64_t share)
{
    if (!is_drawn(tally->all++, share)) {
        return;
    }
    tally->scenarios++;
    tally->failures += !explore(run, scenario, &tally->counted);
    if (tally->scenarios % 1000 == 0) {
        print_message("… %" PRIu64 " scenarios, %" PRIu64 " interleavings, %" PRIu64 " failures\n",
                      tally->scenarios, tally->counted.interleavings, tally->failures);
    }
}

static void conclude(const struct tally *tally)
{
    const struct explored *counted = &tally->counted;

    print_message("%" PRIu64 " interleavings explored, of %" PRIu64 " of %" PRIu64
                  " scenarios; stopped and restarted at %" PRIu64 " points; %" PRIu64
                  " runs of %" PRIu64 " steps\n",
                  counted->interleavings, tally->scenarios, tally->all, counted->points,
                  counted->runs, counted->steps);
    assert_int_equal(tally->failures, 0);
    assert_true(counted->interleavings > 0);
}

static void one_that_stops_at_any_step_harms_nothing(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (unsigned s = 0; s < scene_count; s++) {
        for (unsigned i = 0; i < program_count; i++) {
            const struct scenario scenario = {&scenes[s], {&programs[i], NULL}, 1};

            try(&tally, &scenario, 16);
        }
    }
    conclude(&tally);
}

static void try_pairs(struct tally *tally, unsigned faults, uint64_t share)
{
    for (unsigned s = 0; s < scene_count; s++) {
        for (unsigned i = 0; i < program_count; i++) {
            for (unsigned k = i; k < program_count; k++) {
                const struct scenario scenario = {&scenes[s], {&programs[i], &programs[k]}, faults};

                try(tally, &scenario, share);
            }
        }
    }
}

static void two_in_every_order_harm_nothing(void **state)
{
    struct tally tally = {0};

    (void)state;
    try_pairs(&tally, 0, 400);
    conclude(&tally);
}

static void two_in_every_order_of_which_one_stops_harm_nothing(void **state)
{
    struct tally tally = {0};

    (void)state;
    try_pairs(&tally, 1, 6000);
    conclude(&tally);
}

static void the_run_that_is_named_holds(void **state)
{
    (void)state;
    assert_true(explore_replay(run, getenv("OUTBOXD_CRASH_REPLAY")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_stops_at_any_step_harms_nothing),
        cmocka_unit_test(two_in_every_order_harm_nothing),
        cmocka_unit_test(two_in_every_order_of_which_one_stops_harm_nothing),
    };
    const struct CMUnitTest one[] = {cmocka_unit_test(the_run_that_is_named_holds)};
    int failed;

    run = run_create();
    if (getenv("OUTBOXD_CRASH_REPLAY")) {
        failed = cmocka_run_group_tests_name("one run", one, NULL, NULL);
    } else {
        failed = cmocka_run_group_tests_name("crash points", tests, NULL, NULL);
    }
    run_destroy(&run);
    return failed;
}
