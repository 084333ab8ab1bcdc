/* Templates: places, escapes, what is no place, lanes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/keys.h"
#include "common/core/template.h"

static int lookup(void *arg, struct span place, struct span *ret)
{
    static const struct {
        const char *place, *value;
    } rows[] = {
        {"id", "ob_1"},
        {"payload.emoji", "#\xef\xb8\x8f\xe2\x83\xa3"},
        {"payload.path", "a/b?c=d&e%"},
        {"payload.dots", ".."},
        {"payload.dot", "."},
        {"payload.three", "..."},
        {"payload.empty", ""},
    };

    (void)arg;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_equal(place, span_of(rows[i].place))) {
            *ret = span_of(rows[i].value);
            return 0;
        }
    }
    return -ENOENT;
}

static void expect(const char *text, enum template_escape escape, const char *expected)
{
    struct buf out;
    struct span place;

    buf_init(&out, 1000);
    assert_int_equal(template_expand(text, escape, lookup, NULL, &out, &place), 0);
    assert_string_equal(out.bytes ? out.bytes : "", expected);
    buf_done(&out);
}

static void values_are_percent_encoded_in_urls(void **state)
{
    (void)state;
    expect("/messages/{id}", TEMPLATE_PERCENT, "/messages/ob_1");
    expect("/r/{payload.emoji}/x", TEMPLATE_PERCENT, "/r/%23%EF%B8%8F%E2%83%A3/x");
    expect("/f/{payload.path}?a={id}", TEMPLATE_PERCENT, "/f/a%2Fb%3Fc%3Dd%26e%25?a=ob_1");
}

static void a_value_never_changes_the_path(void **state)
{
    (void)state;
    expect("/a/{payload.dots}/b", TEMPLATE_PERCENT, "/a/%2E%2E/b");
    expect("/a/{payload.dot}/b", TEMPLATE_PERCENT, "/a/%2E/b");
    expect("/a/{payload.three}/b", TEMPLATE_PERCENT, "/a/.../b");
}

static void other_braces_are_text(void **state)
{
    (void)state;
    expect("{\"a\": {id}, \"b\": {}}", TEMPLATE_RAW, "{\"a\": ob_1, \"b\": {}}");
    expect("{ id }{1}{", TEMPLATE_RAW, "{ id }{1}{");
    expect("", TEMPLATE_RAW, "");
}

static void a_place_without_a_value_is_named(void **state)
{
    struct buf out;
    struct span place = {"", 0};

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(
        template_expand("/x/{payload.nope}", TEMPLATE_PERCENT, lookup, NULL, &out, &place),
        -ENOENT);
    assert_true(span_equal(place, span_of("payload.nope")));
    assert_int_equal(
        template_expand("/x/{payload.empty}", TEMPLATE_PERCENT, lookup, NULL, &out, &place),
        -ENOENT);
    assert_true(span_equal(place, span_of("payload.empty")));
    buf_done(&out);
}

static void a_lane_that_is_too_long_becomes_its_hash(void **state)
{
    char text[300];
    struct buf out;
    struct span place;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    buf_init(&out, 1000);
    assert_int_equal(template_lane(text, lookup, NULL, &out, &place), 0);
    assert_true(out.len <= LANE_MAX);
    assert_true(session_name_is_valid(out.bytes, out.len));
    buf_reset(&out);
    assert_int_equal(template_lane("thread:{payload.path}", lookup, NULL, &out, &place), 0);
    assert_string_equal(out.bytes, "thread:a%2Fb%3Fc%3Dd%26e%25");
    buf_reset(&out);
    assert_int_equal(template_lane("not a lane", lookup, NULL, &out, &place), -ENOENT);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_percent_encoded_in_urls),
        cmocka_unit_test(a_value_never_changes_the_path),
        cmocka_unit_test(other_braces_are_text),
        cmocka_unit_test(a_place_without_a_value_is_named),
        cmocka_unit_test(a_lane_that_is_too_long_becomes_its_hash),
    };

    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
