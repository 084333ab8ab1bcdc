/* Problem documents out of targets' answers: codes, details, current; hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/problem_body.h"

static struct problem_body read_body(const char *type, const char *body)
{
    struct problem_body ret;

    problem_body_read(type, span_of(body), &ret);
    return ret;
}

static void the_code_is_a_member_or_the_end_of_the_type(void **state)
{
    static const struct {
        const char *body, *code;
    } rows[] = {
        {"{\"code\":\"request_in_progress\"}", "request_in_progress"},
        {"{\"type\":\"https://example.org/problems/out-of-credit\"}", "out-of-credit"},
        {"{\"type\":\"urn:problem:quota\",\"title\":\"x\"}", "quota"},
        {"{\"type\":\"about:blank\"}", ""},
        {"{\"code\":\"a\",\"type\":\"x/b\"}", "a"},
        {"{\"code\":\"has blanks\\n\"}", ""},
        {"{\"code\":7}", ""},
        {"{\"code\":7,\"type\":\"x/b\"}", "b"},
        {"{\"code\":\"a\",\"status\":409,\"trace\":12345678901234567890}", "a"},
        {"[]", ""},
        {"nonsense", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(read_body("application/problem+json", rows[i].body).code, rows[i].code);
    }
}

static void only_problem_documents_are_read(void **state)
{
    (void)state;
    assert_string_equal(read_body("application/json", "{\"code\":\"x\"}").code, "");
    assert_string_equal(read_body(NULL, "{\"code\":\"x\"}").code, "");
    assert_string_equal(read_body("application/problem+jsonx", "{\"code\":\"x\"}").code, "");
    assert_string_equal(
        read_body("Application/Problem+JSON; charset=utf-8", "{\"code\":\"x\"}").code, "x");
}

static void current_is_kept_as_json(void **state)
{
    (void)state;
    assert_string_equal(
        read_body("application/problem+json", "{\"current\":{\"version\":7}}").current,
        "{\"version\":7}");
    assert_string_equal(
        read_body("application/problem+json", "{\"current\":{\"version\":12345678901234567890}}")
            .current,
        "{\"version\":12345678901234567890}");
    assert_string_equal(read_body("application/problem+json", "{\"current\":\"r7\"}").current,
                        "\"r7\"");
    assert_string_equal(read_body("application/problem+json", "{\"current\":null}").current, "");
}

static void details_are_cut_and_hold_no_control_characters(void **state)
{
    char body[2000] = "{\"detail\":\"";

    (void)state;
    for (int i = 0; i < 300; i++) {
        strncat(body, "\xc3\xa9", sizeof(body) - strlen(body) - 1);
    }
    strncat(body, "\"}", sizeof(body) - strlen(body) - 1);
    struct problem_body read = read_body("application/problem+json", body);

    assert_int_equal(strlen(read.detail), PROBLEM_DETAIL_MAX);
    read = read_body("application/problem+json", "{\"title\":\"a\\nb\"}");
    assert_string_equal(read.detail, "a b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_is_a_member_or_the_end_of_the_type),
        cmocka_unit_test(only_problem_documents_are_read),
        cmocka_unit_test(current_is_kept_as_json),
        cmocka_unit_test(details_are_cut_and_hold_no_control_characters),
    };

    return cmocka_run_group_tests_name("problem body", tests, NULL, NULL);
}
