/* The life of all event streams. The first reader starts it: how far does each stream reach, then
 * the last seconds are read into the ring (whoever comes back after a restart mostly finds its
 * place there), then it follows. It stops at the end of a round when nobody is left. */
#include "api/event_hub.h"

#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/event_private.h"
#include "api/event_text.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"

#define PRIMED_MS           5000 /* of the past, in the ring at the start */
#define TICK_MS             50
#define HEARTBEATS_PER_TICK 250 /* at most: they spread out */
#define SWEEP_MS            1000
#define DRAIN_CUT_MS        1000
#define CONNECT_TIMEOUT_MS  10000

/* ---- readers ---- */

static void unlink_quiet(struct event_hub *hub, struct event_reader *reader)
{
    if (reader->previous_quiet) {
        reader->previous_quiet->next_quiet = reader->next_quiet;
    } else if (hub->quiet_first == reader) {
        hub->quiet_first = reader->next_quiet;
    }
    if (reader->next_quiet) {
        reader->next_quiet->previous_quiet = reader->previous_quiet;
    } else if (hub->quiet_last == reader) {
        hub->quiet_last = reader->previous_quiet;
    }
    reader->next_quiet = reader->previous_quiet = NULL;
}

static void on_tick(uv_timer_t *timer);

void hub_reader_spoke(struct event_hub *hub, struct event_reader *reader)
{
    unlink_quiet(hub, reader);
    reader->quiet_until_ms = clock_mono_ms() + hub->api->settings->http_event_heartbeat;
    reader->previous_quiet = hub->quiet_last;
    if (hub->quiet_last) {
        hub->quiet_last->next_quiet = reader;
    } else {
        hub->quiet_first = reader;
    }
    hub->quiet_last = reader;
    if (!uv_is_active((uv_handle_t *)&hub->tick)) {
        uv_timer_start(&hub->tick, on_tick, TICK_MS, TICK_MS);
    }
}

static void unlink_joining(struct event_hub *hub, struct event_reader *reader)
{
    if (reader->next) {
        reader->next->previous = reader->previous;
    }
    if (reader->previous) {
        reader->previous->next = reader->next;
    } else if (hub->joining == reader) {
        hub->joining = reader->next;
    }
    reader->next = reader->previous = NULL;
}

void hub_reader_gone(struct event_hub *hub, struct event_reader *reader)
{
    unlink_quiet(hub, reader);
    pages_forget(reader);
    if (reader->is_ahead) {
        hub->ahead_count--;
    }
    if (reader->channel) {
        channels_leave(hub, reader);
    } else {
        unlink_joining(hub, reader);
    }
    if (--hub->reader_count == 0) {
        uv_timer_stop(&hub->tick);
        if (hub->is_lost && hub->questions_open == 0) {
            hub->is_lost = false; /* nobody is left to be told of a gap */
            hub->state = HUB_IDLE;
        }
    }
}

static void cut_those_that_fell_off(struct event_hub *hub)
{
    for (struct event_reader *reader = hub->quiet_first; reader; reader = reader->next_quiet) {
        if (reader_has_fallen_off(reader)) {
            reader_cut(reader);
        }
    }
}

static void cut_all(struct event_hub *hub)
{
    for (struct event_reader *reader = hub->quiet_first; reader; reader = reader->next_quiet) {
        reader_cut(reader);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct event_hub *hub = timer->data;
    const int64_t now = clock_mono_ms();

    for (unsigned i = 0;
         i < HEARTBEATS_PER_TICK && hub->quiet_first && hub->quiet_first->quiet_until_ms <= now;
         i++) {
        struct event_reader *reader = hub->quiet_first;

        reader->is_heartbeat_due = true;
        hub_reader_spoke(hub, reader); /* to the end of the row, whether it takes it or not */
        reader_wake(reader);
    }
    if (now - hub->swept_ms >= SWEEP_MS) {
        hub->swept_ms = now;
        cut_those_that_fell_off(hub);
    }
    if (hub->is_draining && now >= hub->cut_all_ms) {
        cut_all(hub);
    }
    gap_look(hub);
    pages_pump(hub);
}

/* ---- events ---- */

void hub_add_event(struct event_hub *hub, const struct store_event *event, bool is_placed)
{
    char text[EVENT_POSITION_TEXT_MAX];
    size_t len = 0;

    if (is_placed) {
        hub->last[event->partition] = event->id;
        len = hub->all.readers ? event_position_write_all(hub->last, text) : 0;
    }
    channels_tell(hub, event_ring_append(&hub->ring, event_record_create(event, is_placed,
                                                                         (struct span){text, len},
                                                                         &hub->scratch)));
}

static void on_events(struct store_event_list *events, void *arg)
{
    struct event_hub *hub = arg;
    struct store_event event;

    while (store_event_next(events, &event)) {
        if (stream_id_compare(event.id, hub->last[event.partition]) > 0) {
            hub_add_event(hub, &event, true);
        }
    }
}

/* ---- start and stop ---- */

static void fail_joining(struct event_hub *hub, enum store_result why)
{
    while (hub->joining) {
        struct event_reader *reader = hub->joining;

        unlink_joining(hub, reader);
        reader->options.joined(why, reader->options.arg);
    }
}

static void run(struct event_hub *hub)
{
    hub->state = HUB_RUNNING;
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        hub->last[p] = stream_id_later(hub->last[p], hub->head[p]);
    }
    while (hub->joining) {
        struct event_reader *reader = hub->joining;

        unlink_joining(hub, reader);
        reader_hub_runs(reader);
    }
}

static bool on_round(bool is_behind, void *arg)
{
    struct event_hub *hub = arg;

    metrics_loop_ran(hub->api->metrics, LABEL_LOOP_EVENTS, clock_wall_ms());
    if (hub->reader_count == 0 || hub->is_draining) {
        hub->state = HUB_IDLE;
        return false;
    }
    if (hub->state == HUB_PRIMING && !is_behind) {
        run(hub);
    }
    if (hub->ahead_count > 0) {
        for (struct event_reader *reader = hub->quiet_first; reader; reader = reader->next_quiet) {
            if (reader->is_ahead) {
                reader_wake(reader);
            }
        }
    }
    return true;
}

static bool on_lost(enum store_result why, void *arg)
{
    struct event_hub *hub = arg;

    if (hub->state != HUB_RUNNING || hub->reader_count == 0) {
        hub->state = HUB_IDLE;
        fail_joining(hub, why);
        return false;
    }
    hub->is_lost = true; /* gap_look follows it again */
    log_warn("event streams wait for the store", "why", store_result_name(why));
    return false;
}

/* Where reading starts in a partition: a few seconds back, as far as nothing was trimmed. */
static struct stream_id start_of(const struct events_answer *answer)
{
    const struct stream_id past = {
        answer->now_ms > PRIMED_MS ? (uint64_t)(answer->now_ms - PRIMED_MS) : 0, 0};
    const struct stream_id from = answer->is_whole ? past : stream_id_later(past, answer->first);

    return stream_id_compare(from, answer->last) < 0 ? from : answer->last;
}

static void follow(struct event_hub *hub)
{
    event_ring_clear(&hub->ring, hub->last);
    hub->state = HUB_PRIMING;
    event_tail_follow(hub->tail, hub->last);
    if (memcmp(hub->last, hub->head, sizeof(hub->last)) == 0) {
        run(hub); /* nothing happened of late */
    }
}

static void on_head(enum store_result result, struct events_answer *answer, void *arg)
{
    const struct head_question *question = arg;
    struct event_hub *hub = question->hub;

    if (result == STORE_OK) {
        hub->head[question->partition] = answer->last;
        hub->last[question->partition] = start_of(answer);
    } else {
        hub->start_result = result;
    }
    if (--hub->questions_open > 0) {
        return;
    }
    if (hub->start_result != STORE_OK || hub->is_closed) {
        hub->state = HUB_IDLE;
        fail_joining(hub, hub->start_result);
    } else {
        follow(hub);
    }
}

static int open_tail(struct event_hub *hub)
{
    const struct event_tail_options options = {
        .url = hub->api->settings->store_url,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .on_events = on_events,
        .on_round = on_round,
        .on_lost = on_lost,
        .arg = hub,
    };

    return hub->tail ? 0 : event_tail_open(hub->api->loop, &options, &hub->tail);
}

bool hub_wants_reader(struct event_hub *hub)
{
    if (hub->state != HUB_IDLE) {
        return hub->state == HUB_RUNNING;
    }
    if (open_tail(hub) < 0) {
        abort(); /* out of memory for a small fixed object: the URL has been used before */
    }
    hub->state = HUB_STARTING;
    hub->start_result = STORE_OK;
    hub->questions_open = PARTITION_COUNT;
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        hub->questions[p] = (struct head_question){hub, p};
        store_events(hub->api->store, p, (struct stream_id){0}, 0, on_head, &hub->questions[p]);
    }
    return false;
}

int event_hub_create(struct api *api, struct event_hub **ret)
{
    struct event_hub *hub = calloc(1, sizeof(*hub));

    if (!hub) {
        return -ENOMEM;
    }
    hub->api = api;
    hub->all.scope = SCOPE_ALL;
    buf_init(&hub->scratch, EVENT_TEXT_MAX);
    if (event_ring_init(&hub->ring) < 0 || event_delayed_create(hub, &hub->delayed) < 0) {
        event_ring_done(&hub->ring);
        free(hub);
        return -ENOMEM;
    }
    uv_timer_init(api->loop, &hub->tick);
    hub->tick.data = hub;
    *ret = hub;
    return 0;
}

void event_hub_drain(struct event_hub *hub)
{
    if (hub->is_draining) {
        return;
    }
    hub->is_draining = true;
    hub->cut_all_ms = clock_mono_ms() + DRAIN_CUT_MS;
    for (struct event_reader *reader = hub->quiet_first; reader; reader = reader->next_quiet) {
        reader_wake(reader);
    }
}

void event_hub_close(struct event_hub *hub)
{
    if (hub) {
        hub->is_closed = true;
        uv_close((uv_handle_t *)&hub->tick, NULL);
        event_delayed_close(hub->delayed);
        event_tail_close(&hub->tail);
    }
}

void event_hub_destroy(struct event_hub **hub_ptr)
{
    struct event_hub *hub = *hub_ptr;

    *hub_ptr = NULL;
    if (hub) {
        event_delayed_destroy(&hub->delayed);
        event_ring_done(&hub->ring);
        buf_done(&hub->scratch);
        free(hub);
    }
}
