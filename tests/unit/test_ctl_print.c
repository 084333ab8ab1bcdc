/* outboxctl's texts: ages, latencies, rates, times; nothing of others commands the terminal; tables
 * stand in columns and give way to a narrow one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "api/ctl/table.h"
#include "common/core/buf.h"
#include "common/core/span.h"

static void ages_are_short(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {INT64_MIN, "0.0s"},
        {0, "0.0s"},
        {450, "0.4s"},
        {9999, "9.9s"},
        {10000, "10s"},
        {59999, "59s"},
        {60000, "1m00s"},
        {185000, "3m05s"},
        {3599999, "59m59s"},
        {8040000, "2h14m"},
        {86400000, "1d00h"},
        {273600000, "3d04h"},
        {INT64_MAX, "106751991167d07h"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[PRINT_MAX];

        print_age(rows[i].ms, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void latencies_and_rates_have_fitting_units(void **state)
{
    static const struct {
        double value;
        const char *latency, *rate;
    } rows[] = {
        {-1, "-", "0/s"},
        {0, "0us", "0/s"},
        {0.000085, "85us", "0.00/s"},
        {0.0012, "1.2ms", "0.00/s"},
        {0.34, "340ms", "0.34/s"},
        {2.5, "2.5s", "2.5/s"},
        {1240, "1240.0s", "1240/s"},
    };
    char text[PRINT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_latency(rows[i].value, text);
        assert_string_equal(text, rows[i].latency);
        print_rate(rows[i].value, text);
        assert_string_equal(text, rows[i].rate);
    }
    print_latency(1e300, text);
    print_rate(1e300, text);
    assert_true(strlen(text) < PRINT_MAX);
}

static void times_of_the_api_are_read(void **state)
{
    static const char *const malformed[] = {
        "",
        "2026-11-30",
        "2026-11-30T23:56:00Z",
        "2026-11-30T23:56:00.123",
        "x",
        "2026-11-30T23:56:00.123Zx",
    };
    int64_t ms = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(print_parse_time(malformed[i], &ms), -EINVAL);
        assert_true(ms == 7);
    }
    assert_int_equal(print_parse_time("1970-01-02T00:00:01.123Z", &ms), 0);
    assert_true(ms == 86401123);
}

static void nothing_commands_the_terminal(void **state)
{
    static const char text[] = "a\033[2Jb\tc\nd\x7f\xc2\x9b\xff\xe2\x80\xae\xc3\xa9\0z";
    struct buf out;

    (void)state;
    buf_init(&out, 100);
    print_safe(&out, (struct span){text, sizeof(text) - 1});
    assert_string_equal(out.bytes, "a?[2Jb c d????\xc3\xa9?z");
    buf_reset(&out);
    print_safe_lines(&out, span_of("a\nb\r"));
    assert_string_equal(out.bytes, "a\nb?");
    buf_done(&out);
}

static void widths_are_those_of_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(print_width(span_of("abc")), 3);
    assert_int_equal(print_width(span_of("\xc3\xa9")), 1);  /* one letter */
    assert_int_equal(print_width(span_of("e\xcc\x81")), 1); /* with a combining accent */
    assert_int_equal(print_width(span_of("\xe6\xbc\xa2\xe5\xad\x97")), 4); /* two wide ones */
    assert_int_equal(print_fit(span_of("\xe6\xbc\xa2\xe5\xad\x97"), 3), 3);
    assert_int_equal(print_fit(span_of("abc"), 9), 3);
    assert_int_equal(print_fit(span_of("abc"), 0), 0);
}

static const struct table_column columns[] = {{"NAME", 0}, {"N", 1}, {"REST", 0}};

static struct table *small_table(void)
{
    static const char *const cells[] = {"a", "1", "x", "a-long-name-indeed", "1234", ""};
    struct table *table = table_create(columns, 3);

    assert_non_null(table);
    for (size_t i = 0; i < 6; i++) {
        table_add_str(table, cells[i]);
    }
    return table;
}

static void tables_stand_in_columns(void **state)
{
    struct table *table = small_table();
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(table_print(table, &(struct table_view){0}, &out), 0);
    assert_string_equal(out.bytes, "NAME                   N  REST\n"
                                   "a                      1  x\n"
                                   "a-long-name-indeed  1234  \n");
    buf_done(&out);
    table_destroy(&table);
    assert_null(table);
}

static void a_narrow_terminal_cuts_the_widest_cells(void **state)
{
    struct table *table = small_table();
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(table_print(table, &(struct table_view){.columns = 22}, &out), 0);
    assert_string_equal(out.bytes, "NAME           N  REST\n"
                                   "a              1  x\n"
                                   "a-long-na\xe2\x80\xa6  1234  \n");
    buf_reset(&out);
    assert_int_equal(table_print(table, &(struct table_view){.columns = 1}, &out),
                     0); /* as far as it goes */
    buf_done(&out);
    table_destroy(&table);
}

static void colours_stand_around_the_text_and_change_no_width(void **state)
{
    struct table *table = table_create(columns, 3);
    struct buf plain, coloured;

    (void)state;
    table_add_styled(table, STYLE_BAD, span_of("a-long-name-indeed"));
    table_add_styled(table, STYLE_GOOD, span_of("1"));
    table_add_styled(table, STYLE_PLAIN, span_of("x"));
    buf_init(&plain, 1000);
    buf_init(&coloured, 1000);
    assert_int_equal(table_print(table, &(struct table_view){.columns = 19}, &plain), 0);
    assert_string_equal(plain.bytes, "NAME        N  REST\na-long-na\xe2\x80\xa6  1  x\n");
    assert_int_equal(
        table_print(table, &(struct table_view){.columns = 19, .is_coloured = true}, &coloured), 0);
    assert_string_equal(coloured.bytes,
                        "\033[1mNAME\033[0m        \033[1mN\033[0m  \033[1mREST\033[0m\n"
                        "\033[31ma-long-na\xe2\x80\xa6\033[0m  \033[32m1\033[0m  x\n");
    buf_done(&plain);
    buf_done(&coloured);
    table_destroy(&table);
}

static void colours_are_for_terminals_unless_somebody_says_otherwise(void **state)
{
    static const struct {
        const char *mode;
        bool is_terminal;
        const char *no_color, *term;
        bool expected;
    } rows[] = {
        {NULL, true, NULL, "xterm", true},    {NULL, false, NULL, "xterm", false},
        {NULL, true, "1", "xterm", false},    {NULL, true, "", "xterm", true},
        {NULL, true, NULL, "dumb", false},    {NULL, true, NULL, NULL, false},
        {"auto", true, NULL, "xterm", true},  {"auto", true, "1", "xterm", false},
        {"always", false, "1", "dumb", true}, {"never", true, NULL, "xterm", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            style_decide(rows[i].mode, rows[i].is_terminal, rows[i].no_color, rows[i].term),
            rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_are_short),
        cmocka_unit_test(latencies_and_rates_have_fitting_units),
        cmocka_unit_test(times_of_the_api_are_read),
        cmocka_unit_test(nothing_commands_the_terminal),
        cmocka_unit_test(widths_are_those_of_a_terminal),
        cmocka_unit_test(tables_stand_in_columns),
        cmocka_unit_test(a_narrow_terminal_cuts_the_widest_cells),
        cmocka_unit_test(colours_stand_around_the_text_and_change_no_width),
        cmocka_unit_test(colours_are_for_terminals_unless_somebody_says_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
