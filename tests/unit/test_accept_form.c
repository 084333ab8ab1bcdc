/* Accept requests: what is taken as it was written, what is refused and as which problem, what the
 * digest tells apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/accept_form.h"

static enum problem_id read_form(const char *body, const char *key, struct accept_form *form)
{
    const struct accept_source source = {
        .body = span_of(body),
        .idempotency_key = key ? span_of(key) : (struct span){0},
        .max_text_bytes = 1000,
    };

    return accept_form_read(&source, form);
}

static void bad_bodies_are_refused_with_their_problem(void **state)
{
    static const struct {
        const char *body;
        enum problem_id problem;
    } rows[] = {
        {"", PROBLEM_BODY_MISSING},
        {"hello", PROBLEM_INVALID_JSON},
        {"{\"text\":\"x\"", PROBLEM_INVALID_JSON},
        {"{\"text\":\"x\"} x", PROBLEM_INVALID_JSON},
        {"[]", PROBLEM_INVALID_MEMBER},
        {"1", PROBLEM_INVALID_MEMBER},
        {"{}", PROBLEM_MISSING_MEMBER},
        {"{\"kind\":\"note\"}", PROBLEM_MISSING_MEMBER},
        {"{\"text\":1}", PROBLEM_INVALID_MEMBER},
        {"{\"text\":\"x\",\"colour\":1}", PROBLEM_UNKNOWN_MEMBER},
        {"{\"text\":\"x\",\"text\":\"y\"}", PROBLEM_DUPLICATE_MEMBER},
        {"{\"kind\":\"n\",\"payload\":{\"a\":1,\"a\":2}}", PROBLEM_DUPLICATE_MEMBER},
        {"{\"text\":\"a\\u0000\"}", PROBLEM_INVALID_TEXT},
        {"{\"kind\":\"n\",\"payload\":{\"a\\u0000\":1}}", PROBLEM_INVALID_TEXT},
        {"{\"text\":\"\\ud800\"}", PROBLEM_INVALID_TEXT},
        {"{\"text\":\"\\udc00\"}", PROBLEM_INVALID_TEXT},
        {"{\"text\":\"\xff\"}", PROBLEM_INVALID_TEXT},
        {"{\"text\":\"\xed\xa0\x80\"}", PROBLEM_INVALID_TEXT},
        {"{\"kind\":\"\",\"payload\":{}}", PROBLEM_INVALID_MEMBER},
        {"{\"kind\":\"a b\",\"payload\":{}}", PROBLEM_INVALID_MEMBER},
        {"{\"kind\":\"n\",\"payload\":null}", PROBLEM_INVALID_MEMBER},
        {"{\"text\":\"x\",\"model\":null}", PROBLEM_INVALID_MEMBER},
        {"{\"kind\":\"n\",\"payload\":1e999}", PROBLEM_INVALID_JSON},
        {"{\"kind\":\"n\",\"payload\":{},\"dependsOn\":\"x\"}", PROBLEM_INVALID_MEMBER},
        {"{\"kind\":\"n\",\"payload\":{},\"dependsOn\":[1]}", PROBLEM_INVALID_MEMBER},
        {"{\"kind\":\"n\",\"payload\":{},\"dependsOn\":[\"ob_1\"]}", PROBLEM_INVALID_MEMBER},
        {"{\"kind\":\"n\",\"payl\\u006fad\":{}}", PROBLEM_INVALID_MEMBER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct accept_form form;
        const enum problem_id problem = read_form(rows[i].body, NULL, &form);

        if (problem != rows[i].problem) {
            fail_msg("%s: %d instead of %d (%s)", rows[i].body, (int)problem, (int)rows[i].problem,
                     form.json.detail);
        }
        accept_form_done(&form);
    }
}

static void what_is_too_long_or_too_deep_is_refused(void **state)
{
    char body[4000];
    struct accept_form form;

    (void)state;
    snprintf(body, sizeof(body), "{\"text\":\"%01001d\"}", 0);
    assert_int_equal(read_form(body, NULL, &form), PROBLEM_TOO_LARGE);
    accept_form_done(&form);
    snprintf(body, sizeof(body), "{\"kind\":\"n\",\"payload\":\"%0999d\"}", 0);
    assert_int_equal(read_form(body, NULL, &form), PROBLEM_TOO_LARGE); /* with its quotes: 1001 */
    accept_form_done(&form);
    snprintf(body, sizeof(body), "{\"clientMessageID\":\"%0257d\",\"text\":\"x\"}", 0);
    assert_int_equal(read_form(body, NULL, &form), PROBLEM_INVALID_MEMBER);
    accept_form_done(&form);
    memset(body, 0, sizeof(body));
    strncat(body, "{\"kind\":\"n\",\"payload\":", sizeof(body) - 1);
    for (int i = 0; i < JSON_DEPTH_MAX; i++) {
        strncat(body, "[", sizeof(body) - strlen(body) - 1);
    }
    assert_int_equal(read_form(body, NULL, &form), PROBLEM_JSON_TOO_DEEP);
    accept_form_done(&form);
}

static void payload_and_model_are_taken_as_they_were_written(void **state)
{
    static const char payload[] =
        "{ \"big\": 12345678901234567890123, \"small\":1.10, \"t\":\"\\u00e9\", \"l\":[1,  2]}";
    char body[400];
    struct accept_form form;

    (void)state;
    snprintf(body, sizeof(body),
             "{\"model\" : \"m\\\"1\", \"kind\":\"note\" ,\"payload\": %s , \"userID\":\"u\"}",
             payload);
    assert_int_equal(read_form(body, NULL, &form), PROBLEM_NONE);
    assert_true(span_equal(form.body.payload, span_of(payload)));
    assert_true(span_equal(form.body.model, span_of("\"m\\\"1\"")));
    assert_true(span_equal(form.body.user_id, span_of("u")));
    accept_form_done(&form);
    /* More tokens than stand on the stack. */
    char many[2000] = "{\"kind\":\"n\",\"payload\":[0";

    for (int i = 0; i < 300; i++) {
        strncat(many, ",1", sizeof(many) - strlen(many) - 1);
    }
    strncat(many, "]}", sizeof(many) - strlen(many) - 1);
    assert_int_equal(read_form(many, NULL, &form), PROBLEM_NONE);
    assert_int_equal(form.body.payload.len, 603);
    accept_form_done(&form);
}

static bool same_digest(const char *one, const char *other)
{
    struct accept_form a;
    struct accept_form b;
    bool same;

    assert_int_equal(read_form(one, NULL, &a), PROBLEM_NONE);
    assert_int_equal(read_form(other, NULL, &b), PROBLEM_NONE);
    same = strcmp(a.digest, b.digest) == 0;
    accept_form_done(&a);
    accept_form_done(&b);
    return same;
}

static void the_digest_tells_messages_apart_and_nothing_else(void **state)
{
    (void)state;
    assert_true(same_digest("{\"text\":\"a\"}", "{ \"kind\" : \"prompt\", \"text\":\"\\u0061\" }"));
    assert_true(same_digest("{\"text\":\"a\",\"clientMessageID\":\"1\"}",
                            "{\"text\":\"a\",\"clientMessageID\":\"2\"}"));
    assert_true(same_digest("{\"kind\":\"n\",\"payload\":{\"a\":[1,2]}}",
                            "{\"kind\":\"n\",\"payload\": { \"a\" : [1, 2] } }"));
    assert_true(same_digest("{\"kind\":\"n\",\"payload\":{\"a\":1,\"b\":{\"c\":[],\"d\":{}}}}",
                            "{\"payload\":{\"b\":{\"d\":{},\"c\":[]},\"a\":1},\"kind\":\"n\"}"));
    assert_false(same_digest("{\"kind\":\"n\",\"payload\":[[1],2]}",
                             "{\"kind\":\"n\",\"payload\":[[1,2]]}"));
    assert_false(
        same_digest("{\"kind\":\"n\",\"payload\":[1,2]}", "{\"kind\":\"n\",\"payload\":[2,1]}"));
    assert_false(same_digest("{\"kind\":\"n\",\"payload\":{\"a\":\"x y\"}}",
                             "{\"kind\":\"n\",\"payload\":{\"a\":\"xy\"}}"));
    assert_false(same_digest("{\"kind\":\"n\",\"payload\":12345678901234567890123}",
                             "{\"kind\":\"n\",\"payload\":12345678901234567890124}"));
    assert_false(same_digest("{\"text\":\"a\"}", "{\"text\":\"b\"}"));
    assert_false(same_digest("{\"text\":\"a\"}", "{\"text\":\"a\",\"userID\":\"u\"}"));
    assert_false(same_digest("{\"text\":\"a\"}", "{\"text\":\"a\",\"model\":1}"));
    assert_false(same_digest("{\"text\":\"\",\"payload\":1}", "{\"payload\":1}"));
}

static void the_header_may_carry_the_client_message_id(void **state)
{
    struct accept_form form;

    (void)state;
    assert_int_equal(read_form("{\"text\":\"x\"}", "k", &form), PROBLEM_NONE);
    assert_true(span_equal(form.body.client_message_id, span_of("k")));
    accept_form_done(&form);
    assert_int_equal(read_form("{\"text\":\"x\",\"clientMessageID\":\"k\"}", "k", &form),
                     PROBLEM_NONE);
    accept_form_done(&form);
    assert_int_equal(read_form("{\"text\":\"x\",\"clientMessageID\":\"l\"}", "k", &form),
                     PROBLEM_KEY_MISMATCH);
    accept_form_done(&form);
    assert_int_equal(read_form("{\"text\":\"x\"}", "", &form), PROBLEM_INVALID_HEADER);
    accept_form_done(&form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_bodies_are_refused_with_their_problem),
        cmocka_unit_test(what_is_too_long_or_too_deep_is_refused),
        cmocka_unit_test(payload_and_model_are_taken_as_they_were_written),
        cmocka_unit_test(the_digest_tells_messages_apart_and_nothing_else),
        cmocka_unit_test(the_header_may_carry_the_client_message_id),
    };

    return cmocka_run_group_tests_name("accept form", tests, NULL, NULL);
}
