/* Stream IDs: read as the store writes them, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/core/stream_id.h"

static void what_the_store_writes_is_read_and_written_the_same(void **state)
{
    static const struct {
        const char *text;
        struct stream_id id;
    } rows[] = {
        {"0-0", {0, 0}},
        {"1733012345678-0", {1733012345678, 0}},
        {"1-18446744073709551615", {1, UINT64_MAX}},
        {"18446744073709551615-18446744073709551615", {UINT64_MAX, UINT64_MAX}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_id id;
        char text[STREAM_ID_TEXT_MAX];

        assert_int_equal(stream_id_parse(span_of(rows[i].text), &id), 0);
        assert_int_equal(stream_id_compare(id, rows[i].id), 0);
        assert_int_equal(stream_id_format(id, text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

static void anything_else_is_refused(void **state)
{
    static const char *const rows[] = {
        "",     "-",    "1",    "1-",  "-1",    "01-1",  "1-01",
        "+1-1", "1--1", "1-1 ", "a-1", "1-1-1", "0x1-1", "18446744073709551616-0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_id id = {7, 7};

        if (stream_id_parse(span_of(rows[i]), &id) == 0) {
            fail_msg("\"%s\" was read", rows[i]);
        }
        assert_int_equal(id.ms, 7); /* written on success only */
    }
}

static void the_time_counts_first(void **state)
{
    (void)state;
    assert_true(stream_id_compare((struct stream_id){1, 9}, (struct stream_id){2, 0}) < 0);
    assert_true(stream_id_compare((struct stream_id){2, 1}, (struct stream_id){2, 0}) > 0);
    assert_int_equal(stream_id_later((struct stream_id){2, 1}, (struct stream_id){2, 3}).seq, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_store_writes_is_read_and_written_the_same),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(the_time_counts_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
