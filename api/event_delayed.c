/* Announces entries that still wait `stuck_after` after their acceptance, at that moment, to those
 * who listen: a look at a partition when the next of its open entries gets there. Writes nothing;
 * nothing is replayed. Contract §3 (`delayed`), §7. */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/event_private.h"
#include "common/base/clock.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"

#define LOOKS_APART_MS 100 /* many that get there one after the other are taken together */
#define AGAIN_MS       1000

struct watch {
    struct event_delayed *all;
    uint32_t partition;
    bool is_watched, is_asking;
    int64_t looked_to_ms; /* acceptance (the store's clock); <0: not looked yet */
    int64_t due_ms;       /* monotonic: the next look */
};

struct event_delayed {
    struct event_hub *hub;
    uv_timer_t timer;
    struct watch watches[PARTITION_COUNT];
};

static void on_timer(uv_timer_t *timer);

static void arm(struct event_delayed *delayed)
{
    int64_t due = INT64_MAX;

    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        const struct watch *watch = &delayed->watches[p];

        if (watch->is_watched && !watch->is_asking && watch->due_ms < due) {
            due = watch->due_ms;
        }
    }
    if (due == INT64_MAX || delayed->hub->is_closed) {
        uv_timer_stop(&delayed->timer);
        return;
    }
    const int64_t wait = due - clock_mono_ms();

    uv_timer_start(&delayed->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void announce(struct event_hub *hub, struct delayed_answer *answer)
{
    struct store_event event;

    while (store_delayed_next(answer, &event)) {
        hub_add_event(hub, &event, false);
    }
}

static void on_looked(enum store_result result, struct delayed_answer *answer, void *arg)
{
    struct watch *watch = arg;
    struct event_hub *hub = watch->all->hub;
    const int64_t now = clock_mono_ms();
    const int64_t stuck_after = hub->api->settings->stuck_after;

    watch->is_asking = false;
    if (hub->is_closed) {
        return;
    }
    if (result != STORE_OK) {
        watch->due_ms = now + AGAIN_MS;
    } else if (watch->is_watched) {
        /* What is accepted from now on gets there no earlier than stuck_after from now. */
        const int64_t next = answer->next_ms < 0 ? answer->now_ms : answer->next_ms;
        const int64_t wait = next + stuck_after - answer->now_ms;

        watch->due_ms = now + (wait > LOOKS_APART_MS ? wait : LOOKS_APART_MS);
        watch->looked_to_ms = answer->looked_to_ms;
        metrics_loop_ran(hub->api->metrics, LABEL_LOOP_DELAYED, clock_wall_ms());
        announce(hub, answer);
    }
    arm(watch->all);
}

static void on_timer(uv_timer_t *timer)
{
    struct event_delayed *delayed = timer->data;
    struct api *api = delayed->hub->api;
    const int64_t now = clock_mono_ms();

    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        struct watch *watch = &delayed->watches[p];

        if (watch->is_watched && !watch->is_asking && watch->due_ms <= now) {
            watch->is_asking = true;
            store_delayed(api->store, p, api->settings->stuck_after, watch->looked_to_ms, on_looked,
                          watch);
        }
    }
    arm(delayed);
}

void event_delayed_watch(struct event_delayed *delayed, uint32_t partition, bool is_watched)
{
    struct watch *watch = &delayed->watches[partition];

    watch->is_watched = is_watched;
    watch->looked_to_ms = -1;
    watch->due_ms = clock_mono_ms();
    arm(delayed);
}

int event_delayed_create(struct event_hub *hub, struct event_delayed **ret)
{
    struct event_delayed *delayed = calloc(1, sizeof(*delayed));

    if (!delayed) {
        return -ENOMEM;
    }
    delayed->hub = hub;
    uv_timer_init(hub->api->loop, &delayed->timer);
    delayed->timer.data = delayed;
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        delayed->watches[p] = (struct watch){.all = delayed, .partition = p};
    }
    *ret = delayed;
    return 0;
}

void event_delayed_close(struct event_delayed *delayed)
{
    uv_close((uv_handle_t *)&delayed->timer, NULL);
}

void event_delayed_destroy(struct event_delayed **delayed)
{
    free(*delayed);
    *delayed = NULL;
}
