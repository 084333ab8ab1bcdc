/* A rate: never more than it says in any stretch of time, nearly all of it, and honest waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/core/rate.h"

#define SECOND INT64_C(1000000000)
#define START  (1000 * SECOND)

static const uint32_t rates[] = {1, 2, 3, 7, 10, 11, 99, 1000, 30000, 333333, 1000000};

static unsigned taken_at_once(int64_t *full_ns, int64_t now_ns, uint32_t rate)
{
    unsigned count = 0;

    for (;;) {
        const struct rate_step step = rate_take(*full_ns, now_ns, rate);

        *full_ns = step.full_ns;
        if (!step.may_go) {
            return count;
        }
        count++;
    }
}

static void a_burst_is_a_tenth_of_a_second_and_at_least_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        int64_t full_ns = 0;
        const unsigned burst = taken_at_once(&full_ns, START, rates[i]);

        assert_in_range(burst, 1, rates[i] / 10 + 1);
        assert_true(burst >= rates[i] / 10 * 99 / 100);
    }
}

/* Asked all the time: of each whole second, and of all, exactly the rate. */
static void who_asks_all_the_time_gets_the_rate(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        int64_t full_ns = 0, now_ns = START;
        unsigned count = taken_at_once(&full_ns, now_ns, rates[i]);
        const unsigned burst = count;

        count = 0;
        while (now_ns < START + 5 * SECOND) {
            const struct rate_step step = rate_take(full_ns, now_ns, rates[i]);

            assert_false(step.may_go);
            assert_true(step.wait_ns > 0);
            now_ns += step.wait_ns;
            if (now_ns < START + 5 * SECOND) {
                assert_true(rate_take(step.full_ns, now_ns, rates[i]).may_go);
                count += taken_at_once(&full_ns, now_ns, rates[i]);
            }
        }
        assert_in_range(count, 5 * rates[i] * 99 / 100 - 1, 5 * rates[i]);
        assert_true(burst + count <= 5 * rates[i] + rates[i] / 10 + 1);
    }
}

static void a_wait_is_no_longer_than_needed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        int64_t full_ns = 0;

        taken_at_once(&full_ns, START, rates[i]);
        const struct rate_step step = rate_take(full_ns, START, rates[i]);

        assert_false(rate_take(full_ns, START + step.wait_ns - 1, rates[i]).may_go);
        assert_true(rate_take(full_ns, START + step.wait_ns, rates[i]).may_go);
    }
}

static void what_was_not_taken_long_ago_is_not_saved_up(void **state)
{
    int64_t full_ns = 0;

    (void)state;
    const unsigned burst = taken_at_once(&full_ns, START, 1000);
    assert_int_equal(taken_at_once(&full_ns, START + 3600 * SECOND, 1000), burst);
}

/* Also after the rate was raised: what was owed at the old one is worth one at most. */
static void a_time_too_far_away_costs_one_turn(void **state)
{
    static const int64_t times[] = {INT64_MAX, INT64_MAX / 2, START + 3600 * SECOND, INT64_MIN, -1};

    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++) {
            const struct rate_step step = rate_take(times[t], START, rates[i]);

            assert_true(step.may_go || step.wait_ns <= SECOND / rates[i] + 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_a_tenth_of_a_second_and_at_least_one),
        cmocka_unit_test(who_asks_all_the_time_gets_the_rate),
        cmocka_unit_test(a_wait_is_no_longer_than_needed),
        cmocka_unit_test(what_was_not_taken_long_ago_is_not_saved_up),
        cmocka_unit_test(a_time_too_far_away_costs_one_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
