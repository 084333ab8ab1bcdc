/* Percent-encoding is one to one, names follow the contract's rules, partitions are stable for
 * ever. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/keys.h"

static void every_pair_of_bytes_survives_a_round_trip(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char raw[2] = {(char)a, (char)b}, encoded[7], decoded[3];
            int64_t len = percent_encode(raw, 2, encoded, sizeof(encoded));

            assert_in_range(len, 2, 6);
            assert_int_equal(strlen(encoded), len);
            assert_int_equal(percent_decode(encoded, (size_t)len, decoded, sizeof(decoded)), 2);
            assert_memory_equal(raw, decoded, 2);
        }
    }
}

static void only_unreserved_characters_stand_for_themselves(void **state)
{
    static const char unreserved[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-";

    (void)state;
    for (int c = 0; c < 256; c++) {
        char raw = (char)c, encoded[4];
        int64_t len = percent_encode(&raw, 1, encoded, sizeof(encoded));

        assert_int_equal(len, c && strchr(unreserved, c) ? 1 : 3);
    }
    char text[32];
    assert_int_equal(percent_encode("a:b\xc3\xa9%", 6, text, sizeof(text)), 14);
    assert_string_equal(text, "a%3Ab%C3%A9%25");
}

static void only_what_the_encoder_writes_is_decoded(void **state)
{
    static const char *const refused[] = {"%",   "%4",   "%zz",      "%3a", "%41", "%2D", "a:b",
                                          "a b", "%%3A", "\xc3\xa9", "x%2", "{",   "%7E"};
    char out[64];

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(percent_decode(refused[i], strlen(refused[i]), out, sizeof(out)), -EINVAL);
    }
    assert_int_equal(percent_decode("", 0, out, sizeof(out)), 0);
    assert_int_equal(percent_decode("%00", 3, out, sizeof(out)), 1);
}

static void a_buffer_that_is_too_small_is_refused_not_overrun(void **state)
{
    char out[4];

    (void)state;
    assert_int_equal(percent_encode("abc", 3, out, 4), 3);
    assert_int_equal(percent_encode("abc", 3, out, 3), -ENOBUFS);
    assert_int_equal(percent_encode(":", 1, out, 3), -ENOBUFS);
    assert_int_equal(percent_encode(":", 1, out, 4), 3);
    assert_int_equal(percent_encode("", 0, out, 0), -ENOBUFS);
    assert_int_equal(percent_decode("abc", 3, out, 3), -ENOBUFS);
    assert_int_equal(percent_decode("abc", 3, out, 4), 3);
}

static void encoded_tuples_never_collide(void **state)
{
    char a[32], b[32];

    (void)state;
    (void)percent_encode("a:b", 3, a, sizeof(a));
    (void)percent_encode("b:c", 3, b, sizeof(b));
    assert_null(strchr(a, ':')); /* the separator of keys can't come out of a name */
    assert_null(strchr(b, ':'));
}

static void partitions_are_those_of_the_published_hash(void **state)
{
    (void)state;
    /* Vectors of the hash's authors. */
    assert_true(fnv1a64("", 0) == 0xcbf29ce484222325u);
    assert_true(fnv1a64("a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(fnv1a64("foobar", 6) == 0x85944171f73967e8u);
    assert_int_equal(partition_of("foobar", 6), 0x85944171f73967e8u % 64);
}

static void names_have_the_contracts_length_and_letters(void **state)
{
    char name[200];

    (void)state;
    memset(name, 'x', sizeof(name));
    assert_false(workspace_name_is_valid(name, 0));
    assert_true(workspace_name_is_valid(name, 64));
    assert_false(workspace_name_is_valid(name, 65));
    assert_true(session_name_is_valid(name, 128));
    assert_false(session_name_is_valid(name, 129));
    for (int c = 0; c < 256; c++) {
        char one = (char)c;
        bool is_good = c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789._:~%-",
                                   c);

        assert_int_equal(workspace_name_is_valid(&one, 1), is_good);
        assert_int_equal(session_name_is_valid(&one, 1), is_good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_bytes_survives_a_round_trip),
        cmocka_unit_test(only_unreserved_characters_stand_for_themselves),
        cmocka_unit_test(only_what_the_encoder_writes_is_decoded),
        cmocka_unit_test(a_buffer_that_is_too_small_is_refused_not_overrun),
        cmocka_unit_test(encoded_tuples_never_collide),
        cmocka_unit_test(partitions_are_those_of_the_published_hash),
        cmocka_unit_test(names_have_the_contracts_length_and_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
