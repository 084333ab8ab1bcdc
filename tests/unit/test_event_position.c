/* Positions of readers: what was written is read, by any process; what strangers make up is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/event_position.h"

static void assert_same(const struct stream_id *a, const struct stream_id *b)
{
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        assert_int_equal(stream_id_compare(a[p], b[p]), 0);
    }
}

static void read_again(const struct stream_id at[PARTITION_COUNT])
{
    struct stream_id read[PARTITION_COUNT];
    char text[EVENT_POSITION_TEXT_MAX];
    const size_t len = event_position_write_all(at, text);

    assert_int_equal(strlen(text), len);
    assert_int_equal(event_position_read_all((struct span){text, len}, read), 0);
    assert_same(read, at);
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        struct stream_id one;

        assert_int_equal(event_position_read((struct span){text, len}, p, &one), 0);
        assert_int_equal(stream_id_compare(one, at[p]), 0);
    }
}

static void all_partitions_are_read_as_they_were_written(void **state)
{
    struct stream_id at[PARTITION_COUNT] = {0};

    (void)state;
    read_again(at); /* nothing ever happened */
    at[63] = (struct stream_id){1, 0};
    read_again(at);
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        at[p] = (struct stream_id){1733012345678 - p * 1000, p % 3};
    }
    read_again(at);
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        at[p] = (struct stream_id){p % 2 ? EVENT_POSITION_MS_MAX : 0, UINT64_MAX};
    }
    read_again(at);
}

static void a_busy_store_needs_few_bytes(void **state)
{
    struct stream_id at[PARTITION_COUNT];
    char text[EVENT_POSITION_TEXT_MAX];

    (void)state;
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        at[p] = (struct stream_id){1733012345678 - p * 500, 0};
    }
    assert_true(event_position_write_all(at, text) < 300);
}

static void a_partition_is_read_by_its_own_readers_only(void **state)
{
    const struct stream_id id = {1733012345678, 4};
    struct stream_id read;
    char text[EVENT_POSITION_TEXT_MAX];
    const size_t len = event_position_write(17, id, text);

    (void)state;
    assert_int_equal(event_position_read((struct span){text, len}, 17, &read), 0);
    assert_int_equal(stream_id_compare(read, id), 0);
    assert_true(event_position_read((struct span){text, len}, 1, &read) < 0);
    assert_true(event_position_read((struct span){text, len}, 7, &read) < 0);
    assert_true(event_position_read((struct span){text, len}, UINT32_MAX, &read) < 0);
}

static void what_was_never_written_is_refused(void **state)
{
    static const char *const rows[] = {
        "",         "p", "p1.", "p1.1", "p1.1-", "p01.1-1", "p1.01-1", "p1.281474976710656-0",
        "P1.1-1",   "g", "g=",  "gAA",  "gAAA=", "g!!!!",   "1-1",     "*",
        "\xff\xfe",
    };
    struct stream_id all[PARTITION_COUNT], one;
    char text[2 * EVENT_POSITION_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (event_position_read(span_of(rows[i]), 1, &one) == 0 ||
            event_position_read_all(span_of(rows[i]), all) == 0) {
            fail_msg("\"%s\" was read", rows[i]);
        }
    }
    /* Cut, longer, or with another byte somewhere: never the same position by another spelling. */
    struct stream_id at[PARTITION_COUNT] = {0}, read[PARTITION_COUNT];

    at[3] = (struct stream_id){1733012345678, 2};
    const size_t len = event_position_write_all(at, text);

    for (size_t cut = 0; cut < len; cut++) {
        assert_true(event_position_read_all((struct span){text, cut}, read) < 0);
    }
    for (size_t i = 0; i < len; i++) {
        const char was = text[i];

        for (int byte = 0; byte < 256; byte++) {
            text[i] = (char)byte;
            if (text[i] != was && event_position_read_all((struct span){text, len}, read) == 0) {
                assert_int_equal(event_position_write_all(read, text + len + 1), len);
                assert_memory_equal(text, text + len + 1, len);
            }
        }
        text[i] = was;
    }
    memset(text + len, 'A', 64);
    assert_true(event_position_read_all((struct span){text, len + 64}, read) < 0);
    memset(text + 1, 'f', sizeof(text) - 1);
    assert_true(event_position_read_all((struct span){text, sizeof(text)}, read) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_partitions_are_read_as_they_were_written),
        cmocka_unit_test(a_busy_store_needs_few_bytes),
        cmocka_unit_test(a_partition_is_read_by_its_own_readers_only),
        cmocka_unit_test(what_was_never_written_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
