/* Events that are older than the ring, for readers that resume: a page at a time, the next one only
 * when the reader has taken the last, a bounded number of pages under way for all. */
#include "api/api.h"
#include "api/event_private.h"
#include "common/base/clock.h"

#define PAGE_EVENTS 100
#define PAGES_MAX   32
#define AGAIN_MS    500 /* the store is away */

static bool is_wanted(struct event_reader *reader, uint32_t partition)
{
    const struct event_hub *hub = reader->hub;
    const struct stream_id at = *reader_at(reader, partition);

    if (stream_id_compare(at, hub->ring.floor[partition]) < 0) {
        return true;
    }
    /* Ahead of us: another node read it first, or it is no position of this store. */
    return stream_id_compare(at, hub->last[partition]) > 0 &&
           !(reader->reached & UINT64_C(1) << partition);
}

int64_t pages_wanted(struct event_reader *reader)
{
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        if ((reads_all(reader) || p == reader->partition) && is_wanted(reader, p)) {
            return p;
        }
    }
    return -1;
}

static void read_page(struct event_reader *reader, struct events_answer *answer)
{
    const uint32_t p = reader->asked_partition;
    struct stream_id *at = reader_at(reader, p);
    struct store_event event;

    if (stream_id_compare(*at, answer->last) > 0) {
        reader_reset(reader, "ahead");
        return;
    }
    if (stream_id_compare(*at, answer->first) < 0 && !answer->is_whole) {
        reader_reset(reader, "trimmed");
        return;
    }
    reader->reached |= UINT64_C(1) << p;
    while (store_event_next(&answer->events, &event)) {
        *at = stream_id_later(*at, event.id);
        if (reader_wants(reader, store_event_field(&event, "workspaceID"),
                         store_event_field(&event, "sessionID"))) {
            reader_write_event(reader, &event);
        }
    }
    if (!answer->is_full) {
        *at = stream_id_later(*at, answer->last);
    }
}

static void on_page(enum store_result result, struct events_answer *answer, void *arg)
{
    struct event_reader *reader = arg;
    struct event_hub *hub = reader->hub;

    hub->asking--;
    reader->is_asking = false;
    if (reader->is_gone) {
        event_reader_destroy(&reader);
    } else if (result == STORE_OK) {
        read_page(reader, answer);
        reader_wake(reader);
    } else {
        hub->ask_after_ms = clock_mono_ms() + AGAIN_MS;
        pages_ask(reader, reader->asked_partition);
    }
    pages_pump(hub);
}

void pages_pump(struct event_hub *hub)
{
    while (hub->ask_first && hub->asking < PAGES_MAX && clock_mono_ms() >= hub->ask_after_ms) {
        struct event_reader *reader = hub->ask_first;

        hub->ask_first = reader->next_ask;
        if (!hub->ask_first) {
            hub->ask_last = NULL;
        }
        reader->is_in_row = false;
        reader->is_asking = true;
        hub->asking++;
        store_events(hub->api->store, reader->asked_partition,
                     *reader_at(reader, reader->asked_partition), PAGE_EVENTS, on_page, reader);
    }
}

void pages_ask(struct event_reader *reader, uint32_t partition)
{
    struct event_hub *hub = reader->hub;

    if (reader->is_in_row || reader->is_asking) {
        return;
    }
    reader->asked_partition = partition;
    reader->is_in_row = true;
    reader->next_ask = NULL;
    if (hub->ask_last) {
        hub->ask_last->next_ask = reader;
    } else {
        hub->ask_first = reader;
    }
    hub->ask_last = reader;
    pages_pump(hub);
}

void pages_forget(struct event_reader *reader)
{
    struct event_hub *hub = reader->hub;
    struct event_reader *before = NULL;

    for (struct event_reader *at = hub->ask_first; at; before = at, at = at->next_ask) {
        if (at != reader) {
            continue;
        }
        if (before) {
            before->next_ask = at->next_ask;
        } else {
            hub->ask_first = at->next_ask;
        }
        if (hub->ask_last == at) {
            hub->ask_last = before;
        }
        reader->is_in_row = false;
        return;
    }
}
