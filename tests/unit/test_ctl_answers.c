/* The API's answers as outboxctl shows them: an entry member by member as it was spelt, a session
 * as a table, what is not one of the API's answers refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/answers.h"
#include "common/core/buf.h"

#define NOW_MS 86401123 /* 1970-01-02T00:00:01.123Z */

static int print(answer_print_fn *how, const char *json, struct buf *out)
{
    json_t *root = json_loads(json, JSON_DECODE_INT_AS_REAL, NULL);

    assert_non_null(root);
    buf_init(out, 10000);
    const int err = how(root, span_of(json), NOW_MS, out);

    json_decref(root);
    return err;
}

static void an_entry_is_shown_as_it_was_spelt(void **state)
{
    struct buf out;

    (void)state;
    assert_int_equal(print(answer_print_entry,
                           " { \"id\" : \"ob_1\",\"text\":\"a \\\"}\\u001b\",\n"
                           "\"payload\":{\"n\":123456789012345678901234567890, \"s\":\"},\\\\\"},"
                           "\"lastError\":{\"code\":\"c\",\"message\":\"m\"},\"delayed\":true,"
                           "\"attempts\":2,\"acceptedAt\":\"1970-01-02T00:00:00.123Z\" } ",
                           &out),
                     0);
    assert_string_equal(
        out.bytes, "id                 ob_1\n"
                   "text               a \"}?\n"
                   "payload            {\"n\":123456789012345678901234567890, \"s\":\"},\\\\\"}\n"
                   "lastError          c: m\n"
                   "delayed            true\n"
                   "attempts           2\n"
                   "acceptedAt         1970-01-02T00:00:00.123Z  (1.0s ago)\n");
    buf_done(&out);
}

static void a_session_is_a_table(void **state)
{
    struct buf out;

    (void)state;
    assert_int_equal(print(answer_print_list,
                           "{\"entries\":[{\"id\":\"ob_1\",\"status\":\"error\",\"kind\":\"note\","
                           "\"attempts\":3,\"acceptedAt\":\"1970-01-01T23:56:00.000Z\","
                           "\"lastError\":{\"code\":\"c\",\"message\":\"m\\nn\"}}]}",
                           &out),
                     0);
    assert_string_equal(out.bytes, "ID    STATUS  KIND  ATTEMPTS    AGE  ERROR\n"
                                   "ob_1  error   note         3  4m01s  c: m n\n");
    buf_done(&out);
    assert_int_equal(print(answer_print_list, "{\"entries\":[]}", &out), 0);
    buf_done(&out);
}

static void who_waits_for_a_failed_entry_says_so(void **state)
{
    struct buf out;

    (void)state;
    assert_int_equal(
        print(answer_print_list,
              "{\"entries\":[{\"id\":\"ob_1\",\"status\":\"pending\",\"kind\":\"note\","
              "\"attempts\":0,\"waitsForFailed\":[\"ob_2\"]},"
              "{\"id\":\"ob_3\",\"status\":\"pending\",\"kind\":\"note\","
              "\"attempts\":0,\"waitsForFailed\":[\"ob_2\",\"ob_4\"]}]}",
              &out),
        0);
    assert_non_null(strstr(out.bytes, "waits for ob_2, failed or parked\n"));
    assert_non_null(strstr(out.bytes, "waits for ob_2 and 1 more, failed or parked\n"));
    buf_done(&out);
}

static void what_was_done_is_one_line(void **state)
{
    struct buf out;

    (void)state;
    assert_int_equal(print(answer_print_changed, "{\"id\":\"ob_1\",\"result\":\"removed\"}", &out),
                     0);
    assert_string_equal(out.bytes, "ob_1 removed\n");
    buf_done(&out);
    assert_int_equal(print(answer_print_changed,
                           "{\"id\":\"ob_2\",\"result\":\"follow_up\",\"entry\":{}}", &out),
                     0);
    assert_string_equal(out.bytes, "ob_2 follow_up (a new entry, sent behind it)\n");
    buf_done(&out);
    assert_int_equal(
        print(answer_print_changed, "{\"id\":\"ob_2\",\"result\":\"replaced\",\"entry\":{}}", &out),
        0);
    assert_string_equal(out.bytes, "ob_2 replaced (a new entry takes its place)\n");
    buf_done(&out);
    assert_int_equal(print(answer_print_retried, "{\"id\":\"ob_3\",\"status\":\"pending\"}", &out),
                     0);
    assert_string_equal(out.bytes, "ob_3 pending\n");
    buf_done(&out);
    /* It has been sent again and has left since. */
    assert_int_equal(print(answer_print_retried, "{\"id\":\"ob_3\",\"result\":\"replaced\"}", &out),
                     0);
    assert_string_equal(out.bytes, "ob_3 replaced\n");
    buf_done(&out);
    assert_int_equal(print(answer_print_accepted,
                           "{\"id\":\"ob_1\",\"status\":\"duplicate\",\"entryStatus\":\"sent\"}",
                           &out),
                     0);
    assert_string_equal(out.bytes, "ob_1 duplicate (sent)\n");
    buf_done(&out);
}

static void other_answers_are_refused(void **state)
{
    static answer_print_fn *const all[] = {answer_print_list, answer_print_entry,
                                           answer_print_retried, answer_print_changed,
                                           answer_print_accepted};
    static const char *const answers[] = {"{}", "{\"id\":7,\"entries\":{}}",
                                          "{\"entries\":null,\"result\":1,\"status\":[]}"};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        for (size_t k = 0; k < sizeof(answers) / sizeof(answers[0]); k++) {
            struct buf out;

            assert_int_equal(print(all[i], answers[k], &out), -EINVAL);
            buf_done(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_shown_as_it_was_spelt),
        cmocka_unit_test(a_session_is_a_table),
        cmocka_unit_test(who_waits_for_a_failed_entry_says_so),
        cmocka_unit_test(what_was_done_is_one_line),
        cmocka_unit_test(other_answers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
