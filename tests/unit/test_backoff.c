/* Delays double, stop at their ceiling and never overflow; Retry-After is read in all its forms and
 * refused in all others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/backoff.h"
#include "common/core/http_date.h"

#define NOV_1994 INT64_C(784111777000) /* Sun, 06 Nov 1994 08:49:37 GMT */
#define HOUR_MS  INT64_C(3600000)

static void delays_double_up_to_the_ceiling(void **state)
{
    static const int64_t expected[] = {10, 10, 20, 40, 80, 100, 100, 100};

    (void)state;
    for (uint32_t tries = 0; tries < 8; tries++) {
        assert_true(backoff_delay_ms(tries, 10, 100, false, 12345) == expected[tries]);
    }
    assert_true(backoff_delay_ms(3, 200, 100, false, 0) == 100);
    assert_true(backoff_delay_ms(3, 0, 100, false, 0) == 0);
    assert_true(backoff_delay_ms(3, -5, 100, false, 0) == 0);
}

static void no_number_of_tries_overflows(void **state)
{
    static const uint32_t tries[] = {1, 2, 31, 32, 33, 63, 64, 65, 1000, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        int64_t step = backoff_delay_ms(tries[i], 3, INT64_MAX, false, 0);
        int64_t drawn = backoff_delay_ms(tries[i], 3, INT64_MAX, true, UINT32_MAX);

        assert_true(step >= 3);
        assert_true(drawn >= 0 && drawn <= step);
        assert_true(backoff_after_floor_ms(INT64_MAX - 1, tries[i], 3, INT64_MAX, true,
                                           UINT32_MAX) >= INT64_MAX - 1);
    }
}

static void full_jitter_reaches_both_ends_and_is_even(void **state)
{
    uint32_t hits[11] = {0};

    (void)state;
    assert_true(backoff_delay_ms(1, 10, 100, true, 0) == 0);
    assert_true(backoff_delay_ms(1, 10, 100, true, UINT32_MAX) == 10);
    for (uint32_t i = 0; i < 11000; i++) {
        int64_t delay = backoff_delay_ms(1, 10, 100, true, i * 390451u);

        assert_true(delay >= 0 && delay <= 10);
        hits[delay]++;
    }
    for (size_t i = 0; i < 11; i++) {
        assert_in_range(hits[i], 900, 1100);
    }
}

/* The generator is part of the test: the same draws every time. */
static uint32_t draw(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

#define DRAWS 10000

/* Full jitter: evenly in [0, step], with a floor (Retry-After) in [floor, floor + step]. The mean
 * of 10,000 draws lies within 3 % of the middle: the deviation of such a mean is 0.6 %. */
static void the_draws_are_even_by_bounds_and_mean(void **state)
{
    static const int64_t floors[] = {0, 30000};
    uint64_t seed = 2026;

    (void)state;
    for (size_t i = 0; i < sizeof(floors) / sizeof(floors[0]); i++) {
        for (uint32_t tries = 1; tries <= 6; tries++) {
            const int64_t step = backoff_delay_ms(tries, 10000, 120000, false, 0);
            int64_t sum = 0, least = INT64_MAX, most = 0;

            for (int n = 0; n < DRAWS; n++) {
                const uint32_t random = draw(&seed);
                const int64_t delay =
                    floors[i] > 0
                        ? backoff_after_floor_ms(floors[i], tries, 10000, 120000, true, random)
                        : backoff_delay_ms(tries, 10000, 120000, true, random);

                sum += delay - floors[i];
                least = delay < least ? delay : least;
                most = delay > most ? delay : most;
            }
            assert_true(least >= floors[i] && least < floors[i] + step / 100);
            assert_true(most <= floors[i] + step && most > floors[i] + step - step / 100);
            assert_in_range(sum / DRAWS, step / 2 - step * 3 / 200, step / 2 + step * 3 / 200);
        }
    }
}

static void a_floor_is_never_undercut(void **state)
{
    (void)state;
    for (uint32_t random = 0; random < UINT32_MAX - 100000000u; random += 100000000u) {
        int64_t delay = backoff_after_floor_ms(5000, 3, 10, 100, true, random);

        assert_true(delay >= 5000 && delay <= 5040);
    }
    assert_true(backoff_after_floor_ms(5000, 3, 10, 100, false, 99) == 5000);
    assert_true(backoff_after_floor_ms(-7, 1, 10, 100, false, 99) == 0);
}

static int64_t retry_after(const char *text, int64_t now_ms)
{
    return backoff_retry_after(text, strlen(text), now_ms, HOUR_MS);
}

static void seconds_are_read_and_clamped(void **state)
{
    (void)state;
    assert_true(retry_after("1", 0) == 1000);
    assert_true(retry_after("120", 0) == 120000);
    assert_true(retry_after(" \t120 ", 0) == 120000);
    assert_true(retry_after("0005", 0) == 5000);
    assert_true(retry_after("3600", 0) == HOUR_MS);
    assert_true(retry_after("3601", 0) == HOUR_MS);
    assert_true(retry_after("9000000000", 0) == HOUR_MS);
}

static void what_falls_back_to_the_backoff(void **state)
{
    static const char *const refused[] = {
        "",
        " ",
        "0",
        "000",
        "-1",
        "+1",
        "1.5",
        "1,5",
        "1e3",
        "0x10",
        "abc",
        "12 34",
        "5s",
        "1;",
        "\"5\"",
        "99999999999999999999",
        "9223372036854775807",
        "9999999999999999999999999999999999999",
        "Sun, 06 Nov 1994 08:49:37",     /* no zone */
        "Sun, 06 Nov 1994 08:49:37 UTC", /* not GMT */
        "Sun, 06 Nov 1994 08:49:37 GMT x",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Xun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov 06 08:49:37 1994 GMT",
        "1994-11-06T08:49:37Z",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_true(retry_after(refused[i], NOV_1994 - 5000) == -1);
    }
    assert_true(backoff_retry_after("5\0", 2, 0, HOUR_MS) == -1);
    assert_true(backoff_retry_after("5", 1, 0, 0) == -1);
}

static void the_three_forms_of_a_date_are_one_moment(void **state)
{
    static const char *const forms[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int64_t ms = 0;

        assert_int_equal(http_date_parse(forms[i], strlen(forms[i]), NOV_1994, &ms), 0);
        assert_true(ms == NOV_1994);
        assert_true(retry_after(forms[i], NOV_1994 - 7000) == 7000);
        assert_true(retry_after(forms[i], NOV_1994 - 1) == 1);
        assert_true(retry_after(forms[i], NOV_1994) == -1); /* now: past */
        assert_true(retry_after(forms[i], NOV_1994 + 1) == -1);
        assert_true(retry_after(forms[i], NOV_1994 - 2 * HOUR_MS) == HOUR_MS);
        assert_true(retry_after(forms[i], INT64_MIN) == HOUR_MS); /* whatever the clock says */
        assert_true(retry_after(forms[i], INT64_MAX) == -1);
    }
}

static int64_t date_ms(const char *text, int64_t now_ms)
{
    int64_t ms = -1;

    assert_int_equal(http_date_parse(text, strlen(text), now_ms, &ms), 0);
    return ms;
}

static void leap_days_and_leap_seconds_exist(void **state)
{
    (void)state;
    assert_true(date_ms("Tue, 29 Feb 2000 00:00:00 GMT", 0) == INT64_C(951782400000));
    assert_true(date_ms("Thu, 29 Feb 2024 12:00:00 GMT", 0) == INT64_C(1709208000000));
    assert_true(date_ms("Fri, 01 Mar 2024 00:00:00 GMT", 0) == INT64_C(1709251200000));
    assert_true(date_ms("Mon, 01 Mar 2100 00:00:00 GMT", 0) == INT64_C(4107542400000));
    assert_true(date_ms("Sat, 31 Dec 2016 23:59:60 GMT", 0) == INT64_C(1483228800000));
    assert_true(date_ms("Thu, 01 Jan 1970 00:00:00 GMT", 0) == 0);
    assert_true(date_ms("Fri, 31 Dec 9999 23:59:59 GMT", 0) == INT64_C(253402300799000));
    assert_true(date_ms("Wed, 31 Dec 1969 23:59:59 GMT", 0) == -1000);
}

static void two_digit_years_are_at_most_fifty_years_ahead(void **state)
{
    int64_t in_2026 = date_ms("Tue, 01 Dec 2026 00:00:00 GMT", 0);
    int64_t in_2099 = date_ms("Tue, 01 Dec 2099 00:00:00 GMT", 0);

    (void)state;
    assert_true(date_ms("Tuesday, 01-Dec-26 00:00:05 GMT", in_2026) == in_2026 + 5000);
    assert_true(date_ms("Tuesday, 01-Dec-76 00:00:00 GMT", in_2026) ==
                date_ms("Tue, 01 Dec 2076 00:00:00 GMT", 0));
    assert_true(date_ms("Wednesday, 02-Dec-76 00:00:00 GMT", in_2026) ==
                date_ms("Wed, 02 Dec 1976 00:00:00 GMT", 0));
    assert_true(date_ms("Sunday, 06-Nov-94 08:49:37 GMT", in_2026) == NOV_1994);
    assert_true(date_ms("Friday, 01-Jan-01 00:00:00 GMT", in_2099) ==
                date_ms("Sat, 01 Jan 2101 00:00:00 GMT", 0));
}

static void no_cut_or_changed_date_is_misread(void **state)
{
    static const char *const forms[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };

    (void)state;
    for (size_t f = 0; f < 3; f++) {
        for (size_t len = 0; len < strlen(forms[f]); len++) {
            int64_t ms;

            assert_int_equal(http_date_parse(forms[f], len, NOV_1994, &ms), -EINVAL);
        }
        for (size_t i = 0; i < strlen(forms[f]); i++) {
            for (int c = 0; c < 256; c++) { /* any answer, but no crash and no overflow */
                char text[40];
                size_t len = strlen(forms[f]);

                memcpy(text, forms[f], len);
                text[i] = (char)c;
                int64_t ms = backoff_retry_after(text, len, NOV_1994 - 1, HOUR_MS);
                assert_true(ms == -1 || (ms > 0 && ms <= HOUR_MS));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_double_up_to_the_ceiling),
        cmocka_unit_test(no_number_of_tries_overflows),
        cmocka_unit_test(full_jitter_reaches_both_ends_and_is_even),
        cmocka_unit_test(the_draws_are_even_by_bounds_and_mean),
        cmocka_unit_test(a_floor_is_never_undercut),
        cmocka_unit_test(seconds_are_read_and_clamped),
        cmocka_unit_test(what_falls_back_to_the_backoff),
        cmocka_unit_test(the_three_forms_of_a_date_are_one_moment),
        cmocka_unit_test(leap_days_and_leap_seconds_exist),
        cmocka_unit_test(two_digit_years_are_at_most_fifty_years_ahead),
        cmocka_unit_test(no_cut_or_changed_date_is_misread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
