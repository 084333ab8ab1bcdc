/* Streams as outboxctl reads them: cut anywhere, with any line ends; and what a person is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/ctl/answers.h"
#include "api/ctl/event_line.h"
#include "api/ctl/sse.h"
#include "common/core/buf.h"

static void note(const struct sse_event *event, void *arg)
{
    struct buf *seen = arg;

    (void)buf_appendf(seen, "[%.*s|%.*s|%.*s]", (int)event->name.len, event->name.ptr,
                      (int)event->data.len, event->data.ptr, (int)event->last_id.len,
                      event->last_id.ptr);
}

static void assert_seen(const char *stream, size_t step, const char *expected)
{
    struct sse sse;
    struct buf seen;

    buf_init(&seen, 65536);
    (void)buf_append_str(&seen, "");
    sse_init(&sse, span_of("before"), note, &seen);
    for (size_t at = 0, len = strlen(stream); at < len; at += step) {
        const size_t left = len - at;

        assert_int_equal(sse_feed(&sse, (struct span){stream + at, left < step ? left : step}), 0);
    }
    assert_string_equal(seen.len > 0 ? seen.bytes : "", expected);
    sse_done(&sse);
    buf_done(&seen);
}

static void events_are_read_however_they_come(void **state)
{
    static const struct {
        const char *stream, *expected;
    } rows[] = {
        {"event: a\nid: 1\ndata: x\n\n", "[a|x|1]"},
        {"event: a\r\nid: 1\r\ndata: x\r\n\r\n", "[a|x|1]"},
        {"event:a\rdata:x\rdata: y\r\r", "[a|x\ny|before]"},
        {": comment\n\ndata: x\n\n", "[message|x|before]"},
        {"event: a\nid: 1\n\ndata: x\n\n", "[message|x|1]"}, /* no data: no event, but an ID */
        {"event: a\nid: 1\ndata: x\n", ""},                  /* not complete */
        {"id: 1\ndata: x\n\nid\ndata: y\n\n", "[message|x|1][message|y|]"},
        {"unknown: 1\ndata:  x\n\n", "[message| x|before]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t step = 1; step < 16; step++) {
            assert_seen(rows[i].stream, step, rows[i].expected);
        }
    }
}

static void what_was_begun_on_another_connection_is_dropped(void **state)
{
    struct sse sse;
    struct buf seen;

    (void)state;
    buf_init(&seen, 65536);
    sse_init(&sse, (struct span){0}, note, &seen);
    assert_int_equal(sse_feed(&sse, span_of("id: 1\ndata: x\n\nid: 2\ndata: y\nda")), 0);
    sse_restart(&sse);
    assert_int_equal(sse_feed(&sse, span_of("data: z\n\n")), 0);
    assert_string_equal(seen.bytes, "[message|x|1][message|z|1]");
    sse_done(&sse);
    buf_done(&seen);
}

static void a_person_sees_a_line_that_commands_no_terminal(void **state)
{
    const struct answer_view view = {0};
    struct buf out;

    (void)state;
    buf_init(&out, 65536);
    assert_int_equal(
        event_line_write(span_of("queue.update"),
                         span_of("{\"type\":\"sent\",\"workspaceID\":\"w\",\"sessionID\":\"s\","
                                 "\"entryID\":\"ob_1\",\"kind\":\"note\\u001b[1m\\n\","
                                 "\"via\":\"answer\",\"attempt\":2,\"at\":\"T\"}"),
                         &view, &out),
        0);
    assert_string_equal(out.bytes, "T  sent        w/s  ob_1  note?[1m  via=answer attempt=2\n");
    buf_reset(&out);
    assert_int_equal(
        event_line_write(span_of("reset"), span_of("{\"reason\":\"trimmed\"}"), &view, &out), 0);
    assert_string_equal(out.bytes, "-- events are missing here (trimmed) --\n");
    assert_true(event_line_write(span_of("x"), span_of("[]"), &view, &out) < 0);
    assert_true(event_line_write(span_of("x"), span_of("{"), &view, &out) < 0);
    buf_done(&out);
}

static void a_journey_tells_how_long_each_step_took(void **state)
{
    const struct answer_view view = {.now_ms = 86410000}; /* 1970-01-02T00:00:10Z */
    json_t *data =
        json_loads("{\"type\":\"verifying\",\"workspaceID\":\"w\",\"entryID\":\"ob_1\","
                   "\"code\":\"timeout\",\"attempts\":2,\"at\":\"1970-01-02T00:00:05.500Z\","
                   "\"nextAttemptAt\":\"1970-01-02T00:00:08.500Z\"}",
                   0, NULL);
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    event_line_journey(data, 0, &view, &out);
    event_line_journey(data, 86404000, &view, &out);
    assert_string_equal(
        out.bytes, "  1970-01-02T00:00:05.500Z      4.5s ago           verifying  code=timeout "
                   "attempts=2 next in 3.0s\n"
                   "  1970-01-02T00:00:05.500Z      4.5s ago    +1.5s  verifying  code=timeout "
                   "attempts=2 next in 3.0s\n");
    buf_done(&out);
    json_decref(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_however_they_come),
        cmocka_unit_test(what_was_begun_on_another_connection_is_dropped),
        cmocka_unit_test(a_person_sees_a_line_that_commands_no_terminal),
        cmocka_unit_test(a_journey_tells_how_long_each_step_took),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
