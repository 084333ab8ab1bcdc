/* Events as text: members by their types, and no byte of the store's breaks the framing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/event_text.h"
#include "common/store/store_events.h"

static void add(struct store_event *event, const char *name, const char *value)
{
    event->fields[event->field_count++] = (struct store_event_field){span_of(name), span_of(value)};
}

static void assert_text(const struct store_event *event, const char *expected)
{
    struct buf out;

    buf_init(&out, EVENT_TEXT_MAX);
    event_text_data(event, &out);
    assert_false(out.failed);
    assert_string_equal(out.bytes, expected);
    buf_done(&out);
}

static void members_have_their_types(void **state)
{
    struct store_event event = {.id = {1733012345678, 3}};

    (void)state;
    add(&event, "type", "retrying");
    add(&event, "entryID", "ob_1");
    add(&event, "userID", "");
    add(&event, "attempt", "2");
    add(&event, "nextAttemptAt", "1733012346000");
    assert_text(&event, "data: {\"type\":\"retrying\",\"entryID\":\"ob_1\",\"attempt\":2,"
                        "\"nextAttemptAt\":\"2024-12-01T00:19:06.000Z\","
                        "\"at\":\"2024-12-01T00:19:05.678Z\"}\n\n");
}

static void what_is_no_number_no_time_or_no_name_is_left_out(void **state)
{
    struct store_event event = {.id = {UINT64_MAX, 0}};

    (void)state;
    add(&event, "attempt", "2e3");
    add(&event, "sends", "-1");
    add(&event, "attempts", "9999999999999999");
    add(&event, "nextAttemptAt", "999999999999999");
    add(&event, "at", "mine");
    add(&event, "a\":1,\"b", "x");
    add(&event, "", "x");
    add(&event, "aNameThatIsLongerThanAnyMemberHas", "x");
    add(&event, "type", "sent");
    add(&event, "type", "sent again");
    assert_text(&event, "data: {\"type\":\"sent\"}\n\n");
}

static void no_value_begins_a_line_of_its_own(void **state)
{
    struct store_event event = {.id = {1, 0}};

    (void)state;
    add(&event, "reason", "a\n\nid: 1\r\ndata: {}\xff");
    assert_text(&event, "data: {\"reason\":\"a\\n\\nid: 1\\r\\ndata: {}\xef\xbf\xbd\","
                        "\"at\":\"1970-01-01T00:00:00.001Z\"}\n\n");
}

static void a_long_value_is_cut(void **state)
{
    static char value[100001];
    struct store_event event = {.id = {1, 0}};
    struct buf out;

    (void)state;
    memset(value, '\1', sizeof(value) - 1);
    while (event.field_count < EVENT_FIELDS_MAX) {
        static const char letters[EVENT_FIELDS_MAX + 1] = "abcdefghijklmnopqrstuvwx";

        event.fields[event.field_count] =
            (struct store_event_field){{&letters[event.field_count], 1}, span_of(value)};
        event.field_count++;
    }
    buf_init(&out, EVENT_TEXT_MAX);
    event_text_data(&event, &out);
    assert_false(out.failed); /* whatever stands in the store fits */
    buf_done(&out);
}

static void events_of_our_own(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, EVENT_TEXT_MAX);
    event_text_head(EVENT_NAME_UPDATE, (struct span){0}, &out);
    event_text_heartbeat(span_of("p1.1-0"), 1, &out);
    event_text_reset(span_of("p1.2-0"), "trimmed", &out);
    assert_string_equal(out.bytes, "event: queue.update\n"
                                   "event: heartbeat\nid: p1.1-0\n"
                                   "data: {\"at\":\"1970-01-01T00:00:00.001Z\"}\n\n"
                                   "event: reset\nid: p1.2-0\ndata: {\"reason\":\"trimmed\"}\n\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_have_their_types),
        cmocka_unit_test(what_is_no_number_no_time_or_no_name_is_left_out),
        cmocka_unit_test(no_value_begins_a_line_of_its_own),
        cmocka_unit_test(a_long_value_is_cut),
        cmocka_unit_test(events_of_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
