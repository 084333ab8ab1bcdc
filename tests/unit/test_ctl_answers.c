/* The API's answers as outboxctl shows them: an entry with all that is known of it, a session as a
 * table, a refusal as a sentence with what to do; what is not one of the API's answers is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/answers.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/explain.h"
#include "api/ctl/table.h"
#include "common/core/buf.h"

static const struct answer_view view = {.now_ms = 86401123}; /* 1970-01-02T00:00:01.123Z */

static int print_as(answer_print_fn *how, const char *json, const struct answer_view *as,
                    struct buf *out)
{
    json_t *root = json_loads(json, JSON_DECODE_INT_AS_REAL, NULL);

    assert_non_null(root);
    buf_init(out, 10000);
    const int err = how(root, span_of(json), as, out);

    json_decref(root);
    return err;
}

static int print(answer_print_fn *how, const char *json, struct buf *out)
{
    return print_as(how, json, &view, out);
}

/* ---- an entry ---- */

static void an_entry_is_shown_as_it_was_spelt(void **state)
{
    struct buf out;

    (void)state;
    assert_int_equal(print(answer_print_entry,
                           " { \"id\" : \"ob_1\",\"text\":\"a \\\"}\\u001b\\nsecond\",\n"
                           "\"payload\":{\"n\":123456789012345678901234567890, \"s\":\"},\\\\\"},"
                           "\"lastError\":{\"code\":\"c\",\"message\":\"m\"},\"delayed\":true,"
                           "\"attempts\":2,\"verifyAttempts\":0,\"status\":\"pending\","
                           "\"nextAttemptAt\":\"1970-01-02T00:00:04.123Z\",\"news\":[1.10],"
                           "\"acceptedAt\":\"1970-01-02T00:00:00.123Z\" } ",
                           &out),
                     0);
    assert_string_equal(
        out.bytes, "ob_1  pending\n"
                   "accepted          1970-01-02T00:00:00.123Z  1.0s ago\n"
                   "failed attempts   2\n"
                   "next attempt      1970-01-02T00:00:04.123Z  in 3.0s\n"
                   "last error        c: m\n"
                   "has been waiting for long (stuck_after)\n"
                   "text              a \"}?\n"
                   "                  second\n"
                   "payload           {\"n\":123456789012345678901234567890, \"s\":\"},\\\\\"}\n"
                   "news              [1.10]\n");
    buf_done(&out);
}

static void what_an_entry_waits_for_is_told_with_its_status(void **state)
{
    json_t *others = json_pack("{s:s}", "ob_2", "error");
    const struct answer_view with_others = {.now_ms = view.now_ms, .others = others};
    struct buf out;

    (void)state;
    assert_int_equal(print_as(answer_print_entry,
                              "{\"id\":\"ob_1\",\"status\":\"pending\","
                              "\"dependsOn\":[\"ob_2\",\"ob_3\"],\"waitsForFailed\":[\"ob_2\"]}",
                              &with_others, &out),
                     0);
    assert_string_equal(out.bytes, "ob_1  pending\n"
                                   "waits for         ob_2  error\n"
                                   "                  ob_3\n"
                                   "failed or parked  ob_2  error\n");
    buf_done(&out);
    json_decref(others);
}

static void a_status_has_its_colour_where_colours_are_wanted(void **state)
{
    const struct answer_view coloured = {.is_coloured = true};
    struct buf out;

    (void)state;
    assert_int_equal(
        print_as(answer_print_entry, "{\"id\":\"ob_1\",\"status\":\"error\"}", &coloured, &out), 0);
    assert_string_equal(out.bytes, "\033[1mob_1\033[0m  \033[31merror\033[0m\n");
    buf_done(&out);
}

/* ---- several ---- */

static void assert_listed(const char *json, bool has_sessions, const char *expected)
{
    json_t *entries = json_loads(json, JSON_DECODE_INT_AS_REAL, NULL), *entry;
    struct table *table = answer_entries_table(has_sessions);
    struct buf out;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        answer_entries_add(table, entry, has_sessions, &view);
    }
    buf_init(&out, 10000);
    assert_int_equal(table_print(table, &(struct table_view){0}, &out), 0);
    assert_string_equal(out.bytes, expected);
    buf_done(&out);
    table_destroy(&table);
    json_decref(entries);
}

static void entries_are_a_table(void **state)
{
    (void)state;
    assert_listed("[{\"id\":\"ob_1\",\"status\":\"error\",\"kind\":\"note\",\"sessionID\":\"s\","
                  "\"attempts\":3,\"acceptedAt\":\"1970-01-01T23:56:00.000Z\","
                  "\"lastError\":{\"code\":\"c\",\"message\":\"m\\nn\"}}]",
                  false,
                  "ID    STATUS  KIND  ATTEMPTS    AGE  WHY\n"
                  "ob_1  error   note         3  4m01s  c: m n\n");
    assert_listed("[{\"id\":\"ob_1\",\"status\":\"parked\",\"sessionID\":\"s\","
                  "\"parkedReason\":\"moving\"}]",
                  true,
                  "ID    SESSION  STATUS  KIND  ATTEMPTS  AGE  WHY\n"
                  "ob_1  s        parked               0    -  moving\n");
}

static void who_waits_for_a_failed_entry_says_so(void **state)
{
    (void)state;
    assert_listed(
        "[{\"id\":\"ob_1\",\"waitsForFailed\":[\"ob_2\"]},"
        "{\"id\":\"ob_3\",\"waitsForFailed\":[\"ob_2\",\"ob_4\"]}]",
        false,
        "ID    STATUS  KIND  ATTEMPTS  AGE  WHY\n"
        "ob_1                       0    -  waits for ob_2, failed or parked\n"
        "ob_3                       0    -  waits for ob_2 and 1 more, failed or parked\n");
}

/* ---- what was done ---- */

static void what_was_done_is_one_line(void **state)
{
    static const struct {
        answer_print_fn *how;
        const char *json, *line;
    } rows[] = {
        {answer_print_changed, "{\"id\":\"ob_1\",\"result\":\"removed\"}", "ob_1 removed\n"},
        {answer_print_changed, "{\"id\":\"ob_2\",\"result\":\"follow_up\",\"entry\":{}}",
         "ob_2 follow_up (a new entry, sent behind it)\n"},
        {answer_print_changed, "{\"id\":\"ob_2\",\"result\":\"replaced\",\"entry\":{}}",
         "ob_2 replaced (a new entry takes its place)\n"},
        {answer_print_retried, "{\"id\":\"ob_3\",\"status\":\"pending\"}", "ob_3 pending\n"},
        /* It has been sent again and has left since. */
        {answer_print_retried, "{\"id\":\"ob_3\",\"result\":\"replaced\"}", "ob_3 replaced\n"},
        {answer_print_members, "{\"paused\":true,\"n\":1.10}",
         "paused             true\nn                  1.10\n"},
        {answer_print_workspaces,
         "{\"workspaceID\":\"w\",\"paused\":true,\"sessions\":2,"
         "\"entries\":{\"error\":1},\"oldestOpenAge\":61.5}",
         "WORKSPACE          SESSIONS  PENDING  DELIVERING  VERIFYING  ERROR  PARKED  OLDEST\n"
         "w          paused         2        0           0          0      1       0   1m01s\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out;

        assert_int_equal(print(rows[i].how, rows[i].json, &out), 0);
        assert_string_equal(out.bytes, rows[i].line);
        buf_done(&out);
    }
}

static void other_answers_are_refused(void **state)
{
    static answer_print_fn *const all[] = {answer_print_entry, answer_print_retried,
                                           answer_print_changed, answer_print_workspaces};
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

/* ---- refusals ---- */

static void a_refusal_is_a_sentence_with_what_to_do(void **state)
{
    static const struct {
        long status;
        const char *json;
        int exit_code;
        const char *text;
    } rows[] = {
        {404, "{\"title\":\"T\",\"code\":\"entry_not_found\",\"detail\":\"D\"}",
         EXIT_CODE_NOT_FOUND,
         "T: D [entry_not_found]\nIt never was, or it ended longer ago than dedupe_ttl.\n"},
        /* The detail is the advice itself: told once. */
        {409, "{\"title\":\"Busy\",\"code\":\"busy\",\"detail\":\"Repeat after Retry-After.\"}",
         EXIT_CODE_CONFLICT,
         "Busy [busy]\nTry again in a moment; `outboxctl show` tells what it does.\n"},
        {422, "{\"title\":\"T\",\"code\":\"idempotency_key_reuse\"}", EXIT_CODE_CONFLICT,
         "T [idempotency_key_reuse]\nChoose a new --id for a new message.\n"},
        {422, "{\"title\":\"T\",\"code\":\"new\",\"detail\":\"D\\u001b\"}", EXIT_CODE_FAILED,
         "T: D? [new]\n"},
        {429, "{\"title\":\"Full\",\"code\":\"session_full\"}", EXIT_CODE_UNAVAILABLE,
         "Full [session_full]\nTry again when some of them are delivered, or raise session_cap; "
         "`outboxctl list` shows them.\n"},
        {401, "{\"title\":\"T\",\"code\":\"unauthorized\"}", EXIT_CODE_DENIED,
         "T [unauthorized]\nThe server wants a token: put it into a file of your own and name that "
         "in OUTBOXCTL_TOKEN_FILE.\n"},
        {502, NULL, EXIT_CODE_UNREACHABLE,
         "http://h answered with HTTP status 502; is that an outboxd?\n"
         "A proxy before outboxd says so: it cannot reach it.\n"},
        {404, NULL, EXIT_CODE_NOT_FOUND,
         "http://h answered with HTTP status 404; is that an outboxd?\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *root = rows[i].json ? json_loads(rows[i].json, 0, NULL) : NULL;
        struct buf out;

        buf_init(&out, 10000);
        assert_int_equal(explain_problem(root, rows[i].status, "http://h", &out),
                         rows[i].exit_code);
        assert_string_equal(out.bytes, rows[i].text);
        buf_done(&out);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_shown_as_it_was_spelt),
        cmocka_unit_test(what_an_entry_waits_for_is_told_with_its_status),
        cmocka_unit_test(a_status_has_its_colour_where_colours_are_wanted),
        cmocka_unit_test(entries_are_a_table),
        cmocka_unit_test(who_waits_for_a_failed_entry_says_so),
        cmocka_unit_test(what_was_done_is_one_line),
        cmocka_unit_test(other_answers_are_refused),
        cmocka_unit_test(a_refusal_is_a_sentence_with_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
