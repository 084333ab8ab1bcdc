/* After an outage of the store: do the streams still hold what follows on the last event read?
 * Others went on writing meanwhile, and may have trimmed beyond it. Readers whom that concerns are
 * cut: when they come back they are told (`reset`), and the others go on. */
#include "api/api.h"
#include "api/event_private.h"
#include "common/base/clock.h"

#define AGAIN_MS 500

static void cut_those_with_gaps(struct event_hub *hub)
{
    for (struct event_reader *reader = hub->quiet_first; reader; reader = reader->next_quiet) {
        if (reads_all(reader) ? hub->gaps != 0
                              : (hub->gaps & UINT64_C(1) << reader->partition) != 0) {
            reader_cut(reader);
        }
    }
}

static void all_answered(struct event_hub *hub)
{
    if (hub->is_closed) {
        return;
    }
    if (hub->reader_count == 0) {
        hub->is_lost = false;
        hub->state = HUB_IDLE;
        return;
    }
    if (hub->start_result != STORE_OK) {
        hub->look_after_ms = clock_mono_ms() + AGAIN_MS;
        return;
    }
    hub->is_lost = false;
    cut_those_with_gaps(hub);
    event_tail_follow(hub->tail, hub->last);
}

static void on_reach(enum store_result result, struct events_answer *answer, void *arg)
{
    const struct head_question *question = arg;
    struct event_hub *hub = question->hub;
    const uint32_t p = question->partition;

    if (result != STORE_OK) {
        hub->start_result = result;
    } else if (!answer->is_whole && stream_id_compare(hub->last[p], answer->first) < 0) {
        hub->gaps |= UINT64_C(1) << p;
        /* The ring does not tell what is missing: who comes back asks the store. */
        hub->ring.floor[p] = stream_id_later(hub->ring.floor[p], answer->first);
    }
    if (--hub->questions_open == 0) {
        all_answered(hub);
    }
}

void gap_look(struct event_hub *hub)
{
    if (!hub->is_lost || hub->questions_open > 0 || clock_mono_ms() < hub->look_after_ms ||
        !store_is_up(hub->api->store)) {
        return;
    }
    hub->start_result = STORE_OK;
    hub->gaps = 0;
    hub->questions_open = PARTITION_COUNT;
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        hub->questions[p] = (struct head_question){hub, p};
        store_events(hub->api->store, p, (struct stream_id){0}, 0, on_reach, &hub->questions[p]);
    }
}
