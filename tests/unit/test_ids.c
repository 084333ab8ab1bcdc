/* Entry IDs sort by time, lock tokens have one spelling and are read strictly. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/ids.h"

static void an_id_has_its_form_and_holds_all_its_bits(void **state)
{
    const uint8_t zeros[10] = {0};
    const uint8_t ones[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

    (void)state;
    assert_string_equal(entry_id_make(0, zeros).text, "ob_00000000000000000000000000");
    assert_string_equal(entry_id_make((INT64_C(1) << 48) - 1, ones).text,
                        "ob_7zzzzzzzzzzzzzzzzzzzzzzzzz");
    /* 1469918176385 is the example of the ULID description. */
    assert_memory_equal(entry_id_make(1469918176385, ones).text, "ob_01aryz6s41", 13);
    for (size_t bit = 0; bit < 80; bit++) { /* no random bit is lost */
        uint8_t random[10] = {0};

        random[bit / 8] = (uint8_t)(1u << (bit % 8));
        struct entry_id id = entry_id_make(1469918176385, random);
        assert_string_not_equal(id.text, entry_id_make(1469918176385, zeros).text);
        assert_true(entry_id_is_valid(id.text, ENTRY_ID_LEN));
    }
}

static void ids_sort_by_time_as_text(void **state)
{
    const uint8_t zeros[10] = {0};
    const uint8_t ones[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

    (void)state;
    for (int64_t ms = 1; ms < INT64_C(1) << 48; ms *= 3) {
        assert_true(strcmp(entry_id_make(ms - 1, ones).text, entry_id_make(ms, zeros).text) < 0);
    }
}

static void what_is_no_id_is_refused(void **state)
{
    static const char *const refused[] = {
        "",
        "ob_0000000000000000000000000",
        "ob_000000000000000000000000000",
        "ob_80000000000000000000000000", /* 129 bits */
        "ob_0000000000000000000000000l",
        "ob_0000000000000000000000000A",
        "ox_00000000000000000000000000",
        "ob_000000000000000000000000:0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_false(entry_id_is_valid(refused[i], strlen(refused[i])));
    }
    assert_false(entry_id_is_valid("ob_0000000000000000000000000\0", ENTRY_ID_LEN));
}

static struct token_parts sample(void)
{
    return (struct token_parts){
        .node = "node-1",
        .generation = 0x3f9a000000000001,
        .slot = 5,
        .incarnation = 0x8c21,
        .claim = 0x1a2,
    };
}

static void assert_same(const struct token_parts *a, const struct token_parts *b)
{
    assert_string_equal(a->node, b->node);
    assert_true(a->generation == b->generation);
    assert_int_equal(a->slot, b->slot);
    assert_true(a->incarnation == b->incarnation);
    assert_true(a->claim == b->claim);
}

static void a_token_reads_back_as_it_was_made(void **state)
{
    struct token_parts parts = sample(), back;
    struct lock_token token = lock_token_make(&parts);

    (void)state;
    assert_string_equal(token.text, "node-1.3f9a000000000001.5.8c21.1a2");
    assert_int_equal(lock_token_parse(token.text, strlen(token.text), &back), 0);
    assert_same(&parts, &back);

    memset(parts.node, 'n', NODE_NAME_MAX);
    parts.generation = parts.incarnation = parts.claim = UINT64_MAX;
    parts.slot = UINT32_MAX;
    token = lock_token_make(&parts);
    memset(&back, 0, sizeof(back));
    assert_int_equal(lock_token_parse(token.text, strlen(token.text), &back), 0);
    assert_same(&parts, &back);
}

static void prefixes_are_those_of_the_slots_tokens(void **state)
{
    struct token_parts parts = sample();
    struct lock_token token = lock_token_make(&parts);
    struct lock_token slot = lock_token_slot_prefix(&parts);
    struct lock_token process = lock_token_process_prefix(&parts);

    (void)state;
    assert_string_equal(slot.text, "node-1.3f9a000000000001.5.");
    assert_string_equal(process.text, "node-1.3f9a000000000001.5.8c21.");
    assert_memory_equal(token.text, slot.text, strlen(slot.text));
    assert_memory_equal(token.text, process.text, strlen(process.text));
}

static void a_token_that_we_would_not_write_is_refused(void **state)
{
    static const char *const refused[] = {
        "",
        ".",
        "n",
        "n.1.2.3",
        "n.1.2.3.",
        "n.1.2.3.4.",
        "n.1.2.3.4.5",
        ".1.2.3.4",
        "n.01.2.3.4",
        "n.1.02.3.4",
        "n.1.a.3.4",
        "n.A.2.3.4",
        "n.1..3.4",
        "n.1.4294967296.3.4",
        "n.10000000000000000.2.3.4",
        "n.-1.2.3.4",
        "n.1.2.3.4 ",
        "n:x.1.2.3.4",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn.1.2.3.4",
    };
    struct token_parts untouched, back;

    (void)state;
    memset(&back, 0x5a, sizeof(back));
    untouched = back;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(lock_token_parse(refused[i], strlen(refused[i]), &back), -EINVAL);
    }
    assert_int_equal(lock_token_parse("n\0x.1.2.3.4", 11, &back), -EINVAL);
    assert_memory_equal(&untouched, &back, sizeof(back));
}

static void every_cut_or_changed_token_is_refused_or_spelled_the_same(void **state)
{
    struct token_parts parts = sample(), back;
    struct lock_token token = lock_token_make(&parts);
    size_t len = strlen(token.text);

    (void)state;
    for (size_t i = 0; i < len; i++) {
        for (int c = 0; c < 256; c++) {
            struct lock_token changed = token;

            changed.text[i] = (char)c;
            if (lock_token_parse(changed.text, len, &back) == 0) {
                assert_string_equal(lock_token_make(&back).text, changed.text);
            }
        }
        char cut[LOCK_TOKEN_MAX];
        memcpy(cut, token.text, i);
        if (lock_token_parse(cut, i, &back) == 0) {
            assert_memory_equal(lock_token_make(&back).text, cut, i);
        }
    }
}

static void node_names_hold_no_separator(void **state)
{
    (void)state;
    assert_true(node_name_is_valid("Node_1-a"));
    assert_false(node_name_is_valid(""));
    assert_false(node_name_is_valid("a.b"));
    assert_false(node_name_is_valid("a:b"));
    assert_false(node_name_is_valid("a b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_its_form_and_holds_all_its_bits),
        cmocka_unit_test(ids_sort_by_time_as_text),
        cmocka_unit_test(what_is_no_id_is_refused),
        cmocka_unit_test(a_token_reads_back_as_it_was_made),
        cmocka_unit_test(prefixes_are_those_of_the_slots_tokens),
        cmocka_unit_test(a_token_that_we_would_not_write_is_refused),
        cmocka_unit_test(every_cut_or_changed_token_is_refused_or_spelled_the_same),
        cmocka_unit_test(node_names_hold_no_separator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
