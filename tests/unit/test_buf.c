/* A buffer grows to its maximum and no further; a failure frees and sticks. UTF-8 is read strictly.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/buf.h"
#include "common/core/utf8.h"

static void bytes_add_up_and_end_in_a_nul(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    assert_null(b.bytes);
    assert_int_equal(buf_append(&b, "ab", 2), 0);
    assert_int_equal(buf_append(&b, NULL, 0), 0);
    assert_int_equal(buf_append_str(&b, "cd"), 0);
    assert_int_equal(buf_appendf(&b, "%d-%s", 7, "x"), 0);
    assert_string_equal(b.bytes, "abcd7-x");
    assert_int_equal(b.len, 7);
    buf_reset(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.bytes, "");
    buf_done(&b);
}

static void exactly_the_maximum_fits(void **state)
{
    char bytes[300];

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (size_t max = 0; max <= 299; max += 13) {
        struct buf b;

        buf_init(&b, max);
        for (size_t i = 0; i < max; i++) {
            assert_int_equal(buf_append(&b, "x", 1), 0);
        }
        assert_int_equal(b.len, max);
        assert_int_equal(buf_append(&b, "x", 1), -ENOBUFS);
        assert_true(b.failed);
        buf_done(&b);

        buf_init(&b, max);
        assert_int_equal(buf_append(&b, bytes, max), 0);
        buf_done(&b);
        buf_init(&b, max);
        assert_int_equal(buf_append(&b, bytes, max + 1), -ENOBUFS);
        buf_done(&b);
    }
}

static void a_failure_frees_and_sticks_until_reset(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 4);
    assert_int_equal(buf_append_str(&b, "abc"), 0);
    assert_int_equal(buf_appendf(&b, "%s", "de"), -ENOBUFS);
    assert_null(b.bytes);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_append(&b, "", 0), -ENOBUFS);
    assert_int_equal(buf_append_str(&b, "a"), -ENOBUFS);
    assert_int_equal(buf_appendf(&b, "a"), -ENOBUFS);
    assert_null(buf_steal(&b, NULL));
    buf_reset(&b);
    assert_int_equal(buf_append_str(&b, "abcd"), 0);
    assert_string_equal(b.bytes, "abcd");
    buf_done(&b);
}

static void lengths_near_the_end_of_size_t_do_not_wrap(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 100);
    assert_int_equal(buf_append(&b, "ab", 2), 0);
    assert_int_equal(buf_append(&b, "", SIZE_MAX), -ENOBUFS);
    assert_true(b.failed);
    buf_reset(&b);
    assert_int_equal(buf_append(&b, "ab", 2), 0);
    assert_int_equal(buf_append(&b, "", SIZE_MAX - 1), -ENOBUFS);
    buf_init(&b, SIZE_MAX); /* no room for the NUL: refused rather than wrapped */
    assert_int_equal(buf_append(&b, "", SIZE_MAX), -ENOBUFS);
    buf_done(&b);
}

static void stolen_bytes_belong_to_the_thief(void **state)
{
    struct buf b;
    size_t len = 9;

    (void)state;
    buf_init(&b, 10);
    char *empty = buf_steal(&b, &len);
    assert_string_equal(empty, "");
    assert_int_equal(len, 0);
    free(empty);
    assert_int_equal(buf_append_str(&b, "abc"), 0);
    char *bytes = buf_steal(&b, &len);
    assert_string_equal(bytes, "abc");
    assert_int_equal(len, 3);
    assert_null(b.bytes);
    assert_int_equal(buf_append_str(&b, "0123456789"), 0);
    buf_done(&b);
    free(bytes);
}

static size_t encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1;) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00u >> n & 0xffu) | code);
    return n;
}

static void every_code_point_is_read_back(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110400; code++) {
        char bytes[4];
        uint32_t back = 0;
        size_t n = encode(code, bytes);
        bool is_good = code < 0x110000 && (code < 0xd800 || code > 0xdfff);

        assert_int_equal(utf8_next(bytes, n, &back), is_good ? n : 0);
        assert_int_equal(back, is_good ? code : 0);
        assert_int_equal(utf8_next(bytes, n - 1, &back), 0);
    }
}

static void overlong_and_broken_sequences_are_refused(void **state)
{
    static const char *const refused[] = {
        "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",    "\x80",
        "\xff",     "\xfe",     "\xc3(",        "\xe2\x82(",    "\xf8\x88\x80\x80\x80"};

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_false(utf8_is_valid(refused[i], strlen(refused[i])));
    }
    assert_true(utf8_is_valid("", 0));
    assert_true(utf8_is_valid("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_add_up_and_end_in_a_nul),
        cmocka_unit_test(exactly_the_maximum_fits),
        cmocka_unit_test(a_failure_frees_and_sticks_until_reset),
        cmocka_unit_test(lengths_near_the_end_of_size_t_do_not_wrap),
        cmocka_unit_test(stolen_bytes_belong_to_the_thief),
        cmocka_unit_test(every_code_point_is_read_back),
        cmocka_unit_test(overlong_and_broken_sequences_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
