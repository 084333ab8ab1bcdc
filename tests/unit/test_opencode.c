/* The IDs that prompts carry, and what opencode's answers mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/core/ids.h"
#include "worker/opencode_answer.h"
#include "worker/opencode_ids.h"
#include "worker/opencode_request.h"
#include "worker/transfer.h"

static struct opencode_ids ids_of(int64_t ms, const uint8_t random[10])
{
    const struct entry_id id = entry_id_make(ms, random);
    struct opencode_ids ids;

    assert_int_equal(opencode_ids_of(span_of(id.text), &ids), 0);
    return ids;
}

static void an_entry_has_one_message_id_in_the_servers_format(void **state)
{
    static const uint8_t zero[10];
    static const uint8_t full[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const struct opencode_ids low = ids_of(0x123456789, zero);
    const struct opencode_ids high = ids_of(0x123456789, full);

    (void)state;
    assert_string_equal(low.message, "msg_12345678900000000000000000");
    assert_string_equal(low.part, "prt_12345678900000000000000000");
    /* 2^80 - 1 in base 62, and the time's lower 48 bits with the random number's first 12. */
    assert_string_equal(high.message, "msg_123456789fff62iEp5bu9VZbsV");
}

static void entries_that_differ_in_any_bit_have_different_ids(void **state)
{
    uint8_t random[10] = {0};
    const struct opencode_ids first = ids_of(1000, random);

    (void)state;
    for (size_t bit = 0; bit < 80; bit++) {
        random[bit / 8] = (uint8_t)(1U << bit % 8);
        assert_string_not_equal(ids_of(1000, random).message, first.message);
        random[bit / 8] = 0;
    }
    assert_string_not_equal(ids_of(1001, random).message, first.message);
}

static void what_is_no_entry_id_has_none(void **state)
{
    static const char *const texts[] = {"", "ob_", "msg_123", "ob_0123456789abcdefghjkmnpqrI",
                                        "ob_8123456789abcdefghjkmnpqrs"};
    struct opencode_ids ids;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(opencode_ids_of(span_of(texts[i]), &ids), -EINVAL);
    }
}

static void only_versions_whose_turns_do_not_follow_ids_get_them(void **state)
{
    static const char *const take[] = {"1.18.16", "1.18.33", "1.19.0", "2.0.0", "1.19.0-beta.1"};
    static const char *const take_none[] = {"",        "1.18.14",     "1.18.15", "1.18.16-rc1",
                                            "1.17.19", "0.99.99",     "1.1.65",  "latest",
                                            "1.18",    "99999999.1.1"};

    (void)state;
    for (size_t i = 0; i < sizeof(take) / sizeof(take[0]); i++) {
        assert_true(opencode_takes_ids(take[i]));
    }
    for (size_t i = 0; i < sizeof(take_none) / sizeof(take_none[0]); i++) {
        assert_false(opencode_takes_ids(take_none[i]));
    }
}

static void a_reply_has_a_role(void **state)
{
    (void)state;
    assert_true(opencode_is_reply(span_of("{\"info\":{\"role\":\"assistant\"},\"parts\":[]}")));
    assert_false(opencode_is_reply(span_of("<!doctype html>")));
    assert_false(opencode_is_reply(span_of("")));
    assert_false(opencode_is_reply(span_of("[]")));
    assert_false(opencode_is_reply(span_of("{\"info\":{\"role\":7}}")));
    assert_false(opencode_is_reply(span_of("{\"info\":\"role\"}")));
    assert_string_equal(
        opencode_read_version(span_of("{\"healthy\":true,\"version\":\"1.2.3\"}")).text, "1.2.3");
    assert_string_equal(opencode_read_version(span_of("<html>")).text, "");
}

static void a_message_is_there_only_if_the_server_shows_this_very_one(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum opencode_message message;
    } rows[] = {
        {200, "{\"info\":{\"id\":\"msg_1\"},\"parts\":[{\"type\":\"text\"}]}",
         OPENCODE_MESSAGE_STORED},
        {200, "{\"info\":{\"id\":\"msg_1\"},\"parts\":[]}", OPENCODE_MESSAGE_EMPTY},
        {200, "{\"info\":{\"id\":\"msg_1\"}}", OPENCODE_MESSAGE_UNKNOWN},
        {200, "{\"info\":{\"id\":\"msg_2\"},\"parts\":[{}]}", OPENCODE_MESSAGE_UNKNOWN},
        {200, "<!doctype html>", OPENCODE_MESSAGE_UNKNOWN},
        {404, "{\"name\":\"NotFoundError\",\"data\":{}}", OPENCODE_MESSAGE_NOT_THERE},
        {404, "{\"name\":\"Other\"}", OPENCODE_MESSAGE_UNKNOWN},
        {404, "not found", OPENCODE_MESSAGE_UNKNOWN},
        {500, "{\"name\":\"NotFoundError\"}", OPENCODE_MESSAGE_UNKNOWN},
        {401, "", OPENCODE_MESSAGE_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(opencode_read_message(rows[i].status, span_of(rows[i].body), "msg_1"),
                         rows[i].message);
    }
}

#define MESSAGE(id, role, created, text)                                                           \
    "{\"info\":{\"id\":\"" id "\",\"role\":\"" role "\",\"time\":{\"created\":" #created           \
    "}},\"parts\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"

static void a_transcript_proves_presence_by_the_exact_text_of_a_user_within_the_window(void **state)
{
    struct opencode_search search = {.text = span_of("hello"), .not_before_ms = 1000};
    static const struct {
        const char *page;
        bool is_readable, is_found, is_past_start;
    } rows[] = {
        {"[" MESSAGE("a", "user", 1000, "hello") "]", true, true, false},
        {"[" MESSAGE("a", "user", 999, "hello") "]", true, false, true},
        {"[" MESSAGE("a", "assistant", 1000, "hello") "]", true, false, false},
        {"[" MESSAGE("a", "user", 1000, "hello ") "]", true, false, false},
        {"[" MESSAGE("a", "user", 2000, "hello") "," MESSAGE("b", "user", 999, "x") "]", true,
         false, true},
        {"[" MESSAGE("a", "user", 999, "x") "," MESSAGE("b", "user", 2000, "hello") "]", true, true,
         true},
        {"[]", true, false, false},
        {"{}", false, false, false},
        {"[{}]", false, false, false},
        {"[{\"info\":{\"id\":\"a\",\"role\":\"user\"}}]", false, false, false},
        {"<html>", false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct opencode_page page = opencode_read_page(span_of(rows[i].page), &search);

        assert_int_equal(page.is_readable, rows[i].is_readable);
        assert_int_equal(page.is_found, rows[i].is_found);
        assert_int_equal(page.is_past_start, rows[i].is_past_start);
    }
}

static void an_equal_text_from_before_the_baseline_is_somebody_elses(void **state)
{
    struct opencode_search search = {
        .text = span_of("yes"), .not_before_ms = 1000, .baseline = span_of("b")};
    const struct opencode_page page = opencode_read_page(
        span_of("[" MESSAGE("a", "user", 2000, "yes") "," MESSAGE("b", "user", 2001, "yes") "]"),
        &search);
    char newest[OPENCODE_BASELINE_MAX + 1];

    (void)state;
    assert_false(page.is_found);
    assert_true(page.is_past_start);
    assert_int_equal(opencode_read_newest(span_of("[" MESSAGE("a", "user", 1, "x") "]"), newest),
                     0);
    assert_string_equal(newest, "a");
    assert_int_equal(opencode_read_newest(span_of("[]"), newest), 0);
    assert_string_equal(newest, "");
    assert_int_equal(opencode_read_newest(span_of("{}"), newest), -EBADMSG);
    assert_int_equal(opencode_read_newest(span_of("[{}]"), newest), -EBADMSG);
}

/* `older` and `newer`: two pages, as a scan reads them. */
static void what_is_newer_than_the_last_that_may_be_its_own_is_somebody_elses(void **state)
{
    static const struct {
        const char *until, *newer, *older;
        bool is_found, is_past_start, has_met, has_passed;
    } rows[] = {
        /* Only the other one's. */
        {"b", "[" MESSAGE("c", "user", 3000, "yes") "]",
         "[" MESSAGE("a", "user", 10, "x") "," MESSAGE("b", "user", 2000, "x") "]", false, true,
         true, true},
        /* Its own is the last that may be. */
        {"b", "[" MESSAGE("c", "user", 3000, "yes") "]", "[" MESSAGE("b", "user", 2000, "yes") "]",
         true, false, true, true},
        /* Its own is older than that. */
        {"b", "[]",
         "[" MESSAGE("a", "user", 2000, "yes") "," MESSAGE("b", "user", 2000, "x") "," MESSAGE(
             "c", "user", 3000, "yes") "]",
         true, false, true, true},
        /* The last that may be is older than the window: nothing in it can be. */
        {"b", "[" MESSAGE("c", "user", 3000, "yes") "]",
         "[" MESSAGE("b", "user", 900, "x") "," MESSAGE("b2", "user", 950, "x") "]", false, true,
         true, true},
        /* It is gone, and one that fits is there: the scan goes on to the baseline, and says so. */
        {"b", "[" MESSAGE("c", "user", 3000, "yes") "]",
         "[" MESSAGE("0", "user", 10, "x") "," MESSAGE("a", "user", 900, "yes") "]", false, true,
         false, true},
        /* It is gone, and none fits. */
        {"b", "[" MESSAGE("c", "user", 3000, "no") "]", "[" MESSAGE("a", "user", 900, "yes") "]",
         false, true, false, false},
        /* There was none. */
        {"-", "[" MESSAGE("c", "user", 3000, "yes") "]", "[" MESSAGE("b", "user", 2000, "yes") "]",
         false, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct opencode_search search = {.text = span_of("yes"),
                                         .not_before_ms = 1000,
                                         .baseline = span_of("0"),
                                         .until = span_of(rows[i].until)};

        assert_false(opencode_read_page(span_of(rows[i].newer), &search).is_found);
        const struct opencode_page page = opencode_read_page(span_of(rows[i].older), &search);

        assert_int_equal(page.is_found, rows[i].is_found);
        assert_int_equal(page.is_past_start, rows[i].is_past_start);
        assert_int_equal(search.has_met_until, rows[i].has_met);
        assert_int_equal(search.has_passed_one, rows[i].has_passed);
    }
}

static void a_prompt_is_text_and_model_as_they_were_accepted(void **state)
{
    static const uint8_t zero[10];
    const struct opencode_ids ids = ids_of(0, zero);
    struct entry entry = {.body = {.has_text = true,
                                   .text = {"a\"b\n\0c", 6},
                                   .model = span_of("{\"modelID\": 1.0e2}")}};
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(opencode_prompt_body(&entry, &ids, &out), 0);
    assert_string_equal(
        out.bytes,
        "{\"messageID\":\"msg_00000000000000000000000000\",\"model\":{\"modelID\": 1.0e2},"
        "\"parts\":[{\"id\":\"prt_00000000000000000000000000\",\"type\":\"text\","
        "\"text\":\"a\\\"b\\n\\u0000c\"}]}");
    buf_reset(&out);
    entry.body.model = (struct span){0};
    assert_int_equal(opencode_prompt_body(&entry, NULL, &out), 0);
    assert_string_equal(out.bytes,
                        "{\"parts\":[{\"type\":\"text\",\"text\":\"a\\\"b\\n\\u0000c\"}]}");
    entry.body.has_text = false;
    assert_int_equal(opencode_prompt_body(&entry, NULL, &out), -EINVAL);
    buf_done(&out);
}

static void urls_stand_below_the_target_whatever_a_session_is_called(void **state)
{
    const struct target target = {.url = "http://agent/base//"};
    const struct target none = {0};
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(opencode_message_url(&target, span_of("ses_1:%x"), "?limit=1", &out), 0);
    assert_string_equal(out.bytes, "http://agent/base/session/ses_1%3A%25x/message?limit=1");
    assert_int_equal(opencode_health_url(&none, &out), -EINVAL);
    buf_done(&out);
}

static void a_password_alone_is_the_servers_own_users(void **state)
{
    const struct target with_user = {.username = "anna", .password = "x"};
    const struct target password_alone = {.password = "x"};
    const struct target open = {.url = "http://agent"};

    (void)state;
    assert_string_equal(opencode_get(&with_user, "", 1).username, "anna");
    assert_string_equal(opencode_get(&password_alone, "", 1).username, "opencode");
    assert_null(opencode_get(&open, "", 1).username);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_has_one_message_id_in_the_servers_format),
        cmocka_unit_test(entries_that_differ_in_any_bit_have_different_ids),
        cmocka_unit_test(what_is_no_entry_id_has_none),
        cmocka_unit_test(only_versions_whose_turns_do_not_follow_ids_get_them),
        cmocka_unit_test(a_reply_has_a_role),
        cmocka_unit_test(a_message_is_there_only_if_the_server_shows_this_very_one),
        cmocka_unit_test(
            a_transcript_proves_presence_by_the_exact_text_of_a_user_within_the_window),
        cmocka_unit_test(an_equal_text_from_before_the_baseline_is_somebody_elses),
        cmocka_unit_test(what_is_newer_than_the_last_that_may_be_its_own_is_somebody_elses),
        cmocka_unit_test(a_prompt_is_text_and_model_as_they_were_accepted),
        cmocka_unit_test(urls_stand_below_the_target_whatever_a_session_is_called),
        cmocka_unit_test(a_password_alone_is_the_servers_own_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
