/* Edits and results in payloads: RFC 7396, contract §6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "common/core/json_exact.h"
#include "common/core/payload_merge.h"

static void a_patch_is_merged_as_rfc_7396_says(void **state)
{
    /* The test cases of its appendix A. */
    static const char *const rows[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
        /* Numbers keep their spelling, those that no C type holds too. */
        {"{\"a\":12345678901234567890,\"b\":[1.10,-0,1E2]}", "{\"c\":9007199254740993.0}",
         "{\"a\":12345678901234567890,\"b\":[1.10,-0,1E2],\"c\":9007199254740993.0}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *target = json_exact_load(span_of(rows[i][0]));
        json_t *patch = json_exact_load(span_of(rows[i][1]));
        json_t *result = payload_patched(target, patch);
        struct buf out;

        buf_init(&out, 4096);
        assert_int_equal(json_exact_dump(result, &out), 0);
        assert_string_equal(out.bytes, rows[i][2]);
        buf_done(&out);
        json_decref(result);
        json_decref(patch);
        json_decref(target);
    }
}

static void results_fill_the_members_that_are_null_and_only_those(void **state)
{
    static const char *const rows[][3] = {
        {"{\"id\":null,\"text\":\"x\"}", "{\"id\":7,\"text\":\"y\"}", "{\"id\":7,\"text\":\"x\"}"},
        {"{\"id\":null}", "{\"other\":7}", "{\"id\":null}"},
        {"{\"id\":null}", "{\"id\":null}\n{\"id\":1}\n{\"id\":2}", "{\"id\":1}"},
        {"{\"a\":null,\"b\":null}", "{\"a\":1}\n{\"b\":[2]}", "{\"a\":1,\"b\":[2]}"},
        {"{\"a\": null}", "not JSON\n{\"a\":1}", "{\"a\":1}"},
        {"{\"a\": null}", "", "{\"a\": null}"},
        /* not changed: the text as it was */
        {"{ \"a\" : 1.10 }", "{\"a\":2}", "{ \"a\" : 1.10 }"},
        {"[null]", "{\"0\":1}", "[null]"},
        {"{\"id\":null,\"n\":98765432109876543210}", "{\"id\":12345678901234567890}",
         "{\"id\":12345678901234567890,\"n\":98765432109876543210}"},
        {"", "{\"a\":1}", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out;
        struct span filled;

        buf_init(&out, 4096);
        assert_int_equal(payload_filled(span_of(rows[i][0]), span_of(rows[i][1]), &out, &filled),
                         0);
        assert_int_equal(filled.len, strlen(rows[i][2]));
        assert_memory_equal(filled.ptr, rows[i][2], filled.len);
        buf_done(&out);
    }
}

static void a_result_is_kept_as_one_line_of_what_it_knows(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(
        payload_result(span_of("{\n \"id\": 7,\n \"x\": null, \"t\":\"a\\nb\"}"), &out), 0);
    assert_string_equal(out.bytes, "{\"id\":7,\"t\":\"a\\nb\"}");
    assert_int_equal(payload_result(span_of("[1]"), &out), -EINVAL);
    assert_int_equal(payload_result(span_of("{}"), &out), -EINVAL);
    assert_int_equal(payload_result(span_of("{\"a\":null}"), &out), -EINVAL);
    assert_int_equal(payload_result(span_of("<html>"), &out), -EINVAL);
    assert_int_equal(payload_result((struct span){0}, &out), -EINVAL);
    buf_done(&out);
}

static void what_is_read_exactly_is_written_as_it_was(void **state)
{
    static const char *const same[] = {
        "0",
        "-1.5e-7",
        "[1,2,[3.0,-4]]",
        "{\"1\":\"2\",\"\\\"3\":\"\\\\\"}",
        "\"a \\\" 12 \\\\\"",
        "[true,false,null,\"\"]",
        "\"\\u0000 12\"",
        "{\"n\":123456789012345678901234567890.00100}",
    };
    static const char *const refused[] = {"",  "{",     "01",       "1.",
                                          "-", "[1 2]", "\"\xff\"", "{\"a\":1]"};

    (void)state;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        json_t *root = json_exact_load(span_of(same[i]));
        struct buf out;

        buf_init(&out, 4096);
        assert_int_equal(json_exact_dump(root, &out), 0);
        assert_string_equal(out.bytes, same[i]);
        buf_done(&out);
        json_decref(root);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_null(json_exact_load(span_of(refused[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_exactly_is_written_as_it_was),
        cmocka_unit_test(a_patch_is_merged_as_rfc_7396_says),
        cmocka_unit_test(results_fill_the_members_that_are_null_and_only_those),
        cmocka_unit_test(a_result_is_kept_as_one_line_of_what_it_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
