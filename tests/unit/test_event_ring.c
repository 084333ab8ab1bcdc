/* The ring of recent events: bounded, and always sure how far back it reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "api/event_ring.h"
#include "api/event_text.h"
#include "common/store/store_events.h"

static struct buf scratch;

static struct event_record *record(uint32_t partition, uint64_t ms, struct span reason)
{
    struct store_event event = {.partition = partition, .id = {ms, 0}, .field_count = 3};

    event.fields[0] = (struct store_event_field){span_of("workspaceID"), span_of("w")};
    event.fields[1] = (struct store_event_field){span_of("sessionID"), span_of("s")};
    event.fields[2] = (struct store_event_field){span_of("reason"), reason};
    return event_record_create(&event, ms > 0, span_of("gall"), &scratch);
}

static void a_record_holds_what_each_reader_is_sent(void **state)
{
    struct event_record *r = record(5, 7, (struct span){0});

    (void)state;
    assert_true(span_equal(r->workspace, span_of("w")));
    assert_true(span_equal(r->session, span_of("s")));
    assert_true(span_equal(r->head, span_of("event: queue.update\nid: p5.7-0\n")));
    assert_true(span_equal(r->head_all, span_of("event: queue.update\nid: gall\n")));
    assert_memory_equal(r->data.ptr, "data: {", 7);
    free(r);
    r = record(5, 0, (struct span){0}); /* not in the stream: no ID, also for those who read all */
    assert_true(span_equal(r->head, span_of("event: queue.update\n")));
    free(r);
}

static void the_floor_follows_what_is_dropped(void **state)
{
    const struct stream_id floor[PARTITION_COUNT] = {[1] = {10, 0}, [2] = {20, 0}};
    struct event_ring ring;
    uint64_t first = 0, last = 0;

    (void)state;
    assert_int_equal(event_ring_init(&ring), 0);
    event_ring_clear(&ring, floor);
    assert_null(event_ring_get(&ring, 0));
    assert_null(event_ring_get(&ring, 1));
    for (uint64_t i = 0; i < 100000; i++) {
        last = event_ring_append(&ring, record(1, 100 + i, (struct span){0}));
        first = first ? first : last;
    }
    assert_int_equal(last, first + 99999); /* numbers go on */
    assert_null(event_ring_get(&ring, first));
    assert_null(event_ring_get(&ring, last + 1));
    assert_int_equal(event_ring_get(&ring, last)->id.ms, 100 + 99999);
    /* The floor is the newest one that is gone. */
    assert_int_equal(event_ring_get(&ring, ring.first)->id.ms, ring.floor[1].ms + 1);
    assert_int_equal(ring.floor[2].ms, 20);
    event_ring_done(&ring);
}

static void large_events_are_bounded_by_their_bytes(void **state)
{
    static char reason[4000];
    const struct stream_id floor[PARTITION_COUNT] = {0};
    struct event_ring ring;

    (void)state;
    memset(reason, '\1', sizeof(reason));
    assert_int_equal(event_ring_init(&ring), 0);
    event_ring_clear(&ring, floor);
    for (uint64_t i = 1; i <= 2000; i++) {
        event_ring_append(&ring, record(1, i, (struct span){reason, sizeof(reason)}));
        assert_true(ring.bytes <= (size_t)16 << 20);
    }
    assert_true(ring.next - ring.first < 1000);
    event_ring_done(&ring);
}

static int set_up(void **state)
{
    (void)state;
    buf_init(&scratch, EVENT_TEXT_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_done(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_holds_what_each_reader_is_sent),
        cmocka_unit_test(the_floor_follows_what_is_dropped),
        cmocka_unit_test(large_events_are_bounded_by_their_bytes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
