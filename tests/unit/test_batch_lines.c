/* The body of a batch: where its lines end, and what a line may say of where its message goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/accept_form.h"
#include "api/batch_lines.h"

static void every_line_is_found_and_empty_ones_are_lines(void **state)
{
    static const struct {
        const char *body;
        size_t count;
        const char *lines[4];
    } rows[] = {
        {"", 0, {0}},
        {"a", 1, {"a"}},
        {"a\n", 1, {"a"}},
        {"a\nb", 2, {"a", "b"}},
        {"a\r\nb\r\n", 2, {"a", "b"}},
        {"\n", 1, {""}},
        {"a\n\nb\n", 3, {"a", "", "b"}},
        {"a\n\n", 2, {"a", ""}},
        {"a\rb\r\r\n\r", 2, {"a\rb\r", ""}},
        {"\r\n \n", 2, {"", " "}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct batch_lines lines = {span_of(rows[i].body)};
        struct span line;

        for (size_t n = 0; n < rows[i].count; n++) {
            assert_true(batch_lines_next(&lines, &line));
            if (!span_equal(line, span_of(rows[i].lines[n]))) {
                fail_msg("row %zu, line %zu: \"%.*s\"", i, n, (int)line.len, line.ptr);
            }
        }
        assert_false(batch_lines_next(&lines, &line));
        assert_int_equal(batch_lines_count(span_of(rows[i].body), 10), rows[i].count);
    }
}

static void counting_stops_behind_the_limit(void **state)
{
    (void)state;
    assert_int_equal(batch_lines_count(span_of("\n\n\n\n\n\n\n\n"), 3), 4);
    assert_int_equal(batch_lines_count(span_of("\n\n\n"), 3), 3);
}

static enum problem_id read_line(const char *text, bool is_line, struct accept_form *form)
{
    const struct accept_source source = {
        .body = span_of(text), .max_text_bytes = 1000, .is_line = is_line};

    return accept_form_read(&source, form);
}

static void a_line_says_where_its_message_goes(void **state)
{
    static const struct {
        const char *text;
        enum problem_id problem;
    } rows[] = {
        {"{\"text\":\"x\"}", PROBLEM_MISSING_MEMBER},
        {"{\"workspaceID\":1,\"text\":\"x\"}", PROBLEM_INVALID_MEMBER},
        {"{\"workspaceID\":\"\",\"text\":\"x\"}", PROBLEM_INVALID_NAME},
        {"{\"workspaceID\":\"a b\",\"text\":\"x\"}", PROBLEM_INVALID_NAME},
        {"{\"workspaceID\":\"w\",\"sessionID\":\"\",\"text\":\"x\"}", PROBLEM_INVALID_NAME},
        {"{\"workspaceID\":\"w\",\"sessionID\":\"a/b\",\"text\":\"x\"}", PROBLEM_INVALID_NAME},
        {"{\"workspaceID\":\"w\",\"sessionID\":null,\"text\":\"x\"}", PROBLEM_INVALID_MEMBER},
        {"{\"workspaceID\":\"w\",\"session\":\"s\",\"text\":\"x\"}", PROBLEM_UNKNOWN_MEMBER},
        {"{\"workspaceID\":\"w\"}", PROBLEM_MISSING_MEMBER},
    };
    struct accept_form form;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (read_line(rows[i].text, true, &form) != rows[i].problem) {
            fail_msg("%s", rows[i].text);
        }
        accept_form_done(&form);
    }
    assert_int_equal(
        read_line("{\"workspaceID\":\"w%2F\",\"sessionID\":\"a:b\",\"text\":\"x\"}", true, &form),
        PROBLEM_NONE);
    assert_true(span_equal(form.workspace, span_of("w%2F")));
    assert_true(span_equal(form.session, span_of("a:b")));
    accept_form_done(&form);
    assert_int_equal(read_line("{\"workspaceID\":\"w\",\"text\":\"x\"}", true, &form),
                     PROBLEM_NONE);
    assert_null(form.session.ptr);
    accept_form_done(&form);
}

/* So that a message that came alone and is repeated in a batch is known. */
static void the_digest_does_not_tell_a_line_from_a_message_that_comes_alone(void **state)
{
    struct accept_form alone, line;

    (void)state;
    assert_int_equal(read_line("{\"kind\":\"k\",\"payload\":{\"a\":1}}", false, &alone),
                     PROBLEM_NONE);
    assert_int_equal(
        read_line(
            "{\"workspaceID\":\"w\",\"payload\":{\"a\":1},\"sessionID\":\"s\",\"kind\":\"k\"}",
            true, &line),
        PROBLEM_NONE);
    assert_string_equal(alone.digest, line.digest);
    accept_form_done(&alone);
    accept_form_done(&line);
    assert_int_equal(read_line("{\"workspaceID\":\"w\",\"text\":\"x\"}", false, &alone),
                     PROBLEM_UNKNOWN_MEMBER);
    accept_form_done(&alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_found_and_empty_ones_are_lines),
        cmocka_unit_test(counting_stops_behind_the_limit),
        cmocka_unit_test(a_line_says_where_its_message_goes),
        cmocka_unit_test(the_digest_does_not_tell_a_line_from_a_message_that_comes_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
