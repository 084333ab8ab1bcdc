/* A workspace's own target, as the store keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>

#include "worker/target.h"

#define SECRET       "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define OTHER_SECRET "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static const struct target fallback = {
    .url = "http://default", .username = "user", .password = "secret"};

static void a_workspace_without_a_target_of_its_own_uses_the_configured_one(void **state)
{
    struct target target;
    json_t *owner;

    (void)state;
    assert_int_equal(target_read((struct span){"", 0}, &fallback, span_of("ws"), &target, &owner),
                     0);
    assert_string_equal(target.url, "http://default");
    assert_string_equal(target.password, "secret");
    assert_null(owner);
}

static void the_configured_url_may_name_the_workspace(void **state)
{
    const struct target template = {.url = "http://{workspace}.agents:4096/{workspace}",
                                    .password = "secret"};
    const struct target unknown = {.url = "http://{session}.agents"};
    struct target target;
    json_t *owner;

    (void)state;
    assert_int_equal(
        target_read((struct span){"", 0}, &template, span_of("a~b:c"), &target, &owner), 0);
    assert_string_equal(target.url, "http://a~b%3Ac.agents:4096/a~b%3Ac");
    assert_string_equal(target.password, "secret");
    json_decref(owner);
    assert_int_equal(target_read((struct span){"", 0}, &unknown, span_of("w"), &target, &owner),
                     -EBADMSG);
    assert_null(target.url);
}

static void nothing_of_the_configured_target_goes_to_another_place(void **state)
{
    struct target target;
    json_t *owner;

    (void)state;
    assert_int_equal(
        target_read(span_of("{\"url\":\"http://own\"}"), &fallback, span_of("ws"), &target, &owner),
        0);
    assert_string_equal(target.url, "http://own");
    assert_null(target.username);
    assert_null(target.password);
    assert_false(target.has_executor);
    json_decref(owner);
}

static void what_cannot_be_read_is_no_target_at_all(void **state)
{
    static const char *const texts[] = {"x",
                                        "{}",
                                        "[]",
                                        "null",
                                        "{\"url\":1}",
                                        "{\"url\":\"http://a\",\"password\":1}",
                                        "{\"url\":\"http://a\",\"username\":[]}",
                                        "{\"url\":\"http://a\",\"executor\":\"smtp\"}",
                                        "{\"url\":\"http://a\",\"executor\":null}",
                                        "{\"url\":\"http://a\",\"secrets\":\"" SECRET "\"}",
                                        "{\"url\":\"http://a\",\"secrets\":[\"" SECRET "\",1]}",
                                        "{\"url\":\"http://a\",\"secrets\":[\"whsec_short\"]}"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct target target;
        json_t *owner;

        assert_int_equal(target_read(span_of(texts[i]), &fallback, span_of("ws"), &target, &owner),
                         -EBADMSG);
        assert_null(target.url);
        assert_int_equal(target.secret_count, 0);
        assert_null(owner);
    }
}

static void secrets_sign_for_the_target_that_they_belong_to(void **state)
{
    char *items[] = {(char *)(uintptr_t)SECRET, (char *)(uintptr_t)OTHER_SECRET};
    struct settings settings = {.target_url = (char *)(uintptr_t) "http://default",
                                .target_secrets = {items, 2}};
    const struct target configured = target_of_settings(&settings);
    struct target target;
    json_t *owner;

    (void)state;
    assert_int_equal(configured.secret_count, 2);
    assert_string_equal(configured.secrets[1], OTHER_SECRET);
    assert_int_equal(target_read((struct span){"", 0}, &configured, span_of("ws"), &target, &owner),
                     0);
    assert_int_equal(target.secret_count, 2);
    assert_int_equal(target_read(span_of("{\"url\":\"http://own\"}"), &configured, span_of("ws"),
                                 &target, &owner),
                     0);
    assert_int_equal(target.secret_count, 0);
    json_decref(owner);
    assert_int_equal(
        target_read(span_of("{\"url\":\"http://own\",\"secrets\":[\"" OTHER_SECRET "\"]}"),
                    &configured, span_of("ws"), &target, &owner),
        0);
    assert_int_equal(target.secret_count, 1);
    assert_string_equal(target.secrets[0], OTHER_SECRET);
    json_decref(owner);
}

static void
a_target_says_what_it_speaks_but_not_for_kinds_that_describe_their_requests(void **state)
{
    const struct kind http = {.executor = EXECUTOR_HTTP};
    const struct kind agent = {.executor = EXECUTOR_OPENCODE};
    struct target target;
    json_t *owner;

    (void)state;
    assert_int_equal(target_executor(&fallback, &agent), EXECUTOR_OPENCODE);
    assert_int_equal(target_read(span_of("{\"url\":\"http://own\",\"executor\":\"ledger\"}"),
                                 &fallback, span_of("ws"), &target, &owner),
                     0);
    assert_int_equal(target_executor(&target, &agent), EXECUTOR_LEDGER);
    assert_int_equal(target_executor(&target, &http), EXECUTOR_HTTP);
    json_decref(owner);
    assert_int_equal(target_read(span_of("{\"url\":\"http://own\",\"executor\":\"http\"}"),
                                 &fallback, span_of("ws"), &target, &owner),
                     0);
    assert_int_equal(target_executor(&target, &agent), EXECUTOR_OPENCODE);
    json_decref(owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_workspace_without_a_target_of_its_own_uses_the_configured_one),
        cmocka_unit_test(the_configured_url_may_name_the_workspace),
        cmocka_unit_test(nothing_of_the_configured_target_goes_to_another_place),
        cmocka_unit_test(what_cannot_be_read_is_no_target_at_all),
        cmocka_unit_test(secrets_sign_for_the_target_that_they_belong_to),
        cmocka_unit_test(
            a_target_says_what_it_speaks_but_not_for_kinds_that_describe_their_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
