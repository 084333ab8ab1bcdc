/* Lines that repeat, with a clock of the test's own. */
#include "common/base/log_repeats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct log_repeats repeats;

static int begin(void **state)
{
    (void)state;
    memset(&repeats, 0, sizeof(repeats));
    return 0;
}

static unsigned see(uint64_t hash, unsigned times, int64_t now_ms)
{
    unsigned written = 0;

    for (unsigned i = 0; i < times; i++) {
        written += log_repeats_see(&repeats, hash, 2, "a message", now_ms);
    }
    return written;
}

static void the_first_few_are_written_and_the_rest_is_told_when_the_window_is_over(void **state)
{
    struct log_repeat told;

    (void)state;
    assert_int_equal(see(7, 1000, 100), LOG_REPEATS_WRITTEN);
    assert_false(log_repeats_take(&repeats, 100 + LOG_REPEATS_WINDOW_MS - 1, false, &told));
    assert_true(log_repeats_take(&repeats, 100 + LOG_REPEATS_WINDOW_MS, false, &told));
    assert_int_equal(told.seen - LOG_REPEATS_WRITTEN, 1000 - LOG_REPEATS_WRITTEN);
    assert_int_equal(told.level, 2);
    assert_string_equal(told.text, "a message");
    assert_false(log_repeats_take(&repeats, 100 + LOG_REPEATS_WINDOW_MS, false, &told));
    assert_int_equal(see(7, 1, 100 + LOG_REPEATS_WINDOW_MS), 1);
}

static void a_line_that_differs_is_always_written(void **state)
{
    (void)state;
    assert_int_equal(see(7, 100, 0), LOG_REPEATS_WRITTEN);
    for (uint64_t hash = 100; hash < 100000; hash++) {
        assert_int_equal(see(hash, 1, 0), 1);
    }
}

static void more_than_can_be_watched_are_written(void **state)
{
    (void)state;
    for (uint64_t hash = 1; hash <= LOG_REPEATS_KEPT; hash++) {
        assert_int_equal(see(hash, 10, 0), LOG_REPEATS_WRITTEN);
    }
    assert_int_equal(see(1000, 10, 0), 10);
}

static void one_now_and_then_is_never_held_back(void **state)
{
    struct log_repeat told;

    (void)state;
    for (int64_t now_ms = 0; now_ms < 1000000; now_ms += LOG_REPEATS_WINDOW_MS / 2) {
        assert_int_equal(see(7, 1, now_ms), 1);
    }
    assert_false(log_repeats_take(&repeats, 2000000, true, &told));
}

static void at_the_end_all_that_was_held_back_is_told(void **state)
{
    struct log_repeat told;

    (void)state;
    (void)see(0, 10, 0);
    (void)see(8, 10, 0);
    assert_true(log_repeats_take(&repeats, 1, true, &told));
    assert_true(log_repeats_take(&repeats, 1, true, &told));
    assert_false(log_repeats_take(&repeats, 1, true, &told));
}

static void a_clock_that_steps_back_holds_nothing_back_for_ever(void **state)
{
    (void)state;
    assert_int_equal(see(7, 100, 1000000), LOG_REPEATS_WRITTEN);
    assert_int_equal(see(7, 1, 10), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(
            the_first_few_are_written_and_the_rest_is_told_when_the_window_is_over, begin),
        cmocka_unit_test_setup(a_line_that_differs_is_always_written, begin),
        cmocka_unit_test_setup(more_than_can_be_watched_are_written, begin),
        cmocka_unit_test_setup(one_now_and_then_is_never_held_back, begin),
        cmocka_unit_test_setup(at_the_end_all_that_was_held_back_is_told, begin),
        cmocka_unit_test_setup(a_clock_that_steps_back_holds_nothing_back_for_ever, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
