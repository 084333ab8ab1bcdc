/* A queue for each kind with a limit, linked through the deliveries. The delivery's timer that
 * repeats store calls is free while it waits: it ends the wait, one way or the other. */
#include "worker/kind_places.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/delivery.h"
#include "worker/held.h"
#include "worker/worker.h"

#define WAITING_MAX     64   /* of one kind: what waits is locked, and busy to people */
#define WAIT_AT_MOST_MS 2000 /* another worker may have a place; a person may have paused */
#define CONTENDED_MS    2000 /* after one was sent away: twice the time until it comes back */

struct kind_queue {
    uint32_t running, waiting;
    struct delivery *first, *last;
    int64_t sent_away_mono_ms; /* when the last one found no room; 0: never */
};

struct kind_places {
    size_t count;
    struct kind_queue queues[];
};

int kind_places_create(const struct settings *settings, struct kind_places **ret)
{
    struct kind_places *places =
        calloc(1, sizeof(*places) + settings->kind_count * sizeof(places->queues[0]));

    if (!places) {
        return -ENOMEM;
    }
    places->count = settings->kind_count;
    *ret = places;
    return 0;
}

void kind_places_destroy(struct kind_places **places)
{
    free(*places);
    *places = NULL;
}

static struct kind_queue *queue_of(const struct delivery *delivery)
{
    const struct worker *worker = delivery->worker;

    return &worker->kind_places->queues[settings_kind_index(worker->settings, delivery->kind)];
}

static void set_waiting(struct delivery *delivery, bool is_waiting)
{
    delivery->place = is_waiting ? DELIVERY_WAITS_FOR_PLACE : DELIVERY_HAS_NO_PLACE;
    held_set_waiting(delivery->worker->held,
                     (struct span){delivery->workspace, delivery->workspace_len}, is_waiting);
}

static void append(struct kind_queue *queue, struct delivery *delivery)
{
    delivery->next_waiting = NULL;
    delivery->previous_waiting = queue->last;
    *(queue->last ? &queue->last->next_waiting : &queue->first) = delivery;
    queue->last = delivery;
    queue->waiting++;
    set_waiting(delivery, true);
}

static void take_out(struct kind_queue *queue, struct delivery *delivery)
{
    struct delivery *next = delivery->next_waiting, *previous = delivery->previous_waiting;

    *(previous ? &previous->next_waiting : &queue->first) = next;
    *(next ? &next->previous_waiting : &queue->last) = previous;
    delivery->next_waiting = delivery->previous_waiting = NULL;
    queue->waiting--;
    set_waiting(delivery, false);
}

static void on_place(uv_timer_t *timer)
{
    delivery_begin_in_place(timer->data);
}

static void on_waited_enough(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;

    take_out(queue_of(delivery), delivery);
    delivery_find_no_place(delivery);
}

/* Places that are free go to those who wait, at the loop's next turn: whoever left one is still
 * busy leaving. */
static void hand_on(struct kind_queue *queue)
{
    while (queue->first && queue->running < queue->first->kind->max_in_flight) {
        struct delivery *next = queue->first;

        take_out(queue, next);
        next->place = DELIVERY_HAS_PLACE;
        queue->running++;
        uv_timer_start(&next->repeat, on_place, 0, 0);
    }
}

/* Whether others have waited longer elsewhere: they were sent away, and this one never was. */
static bool is_before_its_turn(const struct kind_queue *queue, const struct delivery *delivery)
{
    return queue->sent_away_mono_ms > 0 &&
           clock_mono_ms() - queue->sent_away_mono_ms < CONTENDED_MS &&
           delivery->entry->next_attempt_at_ms == 0;
}

enum kind_place kind_place_enter(struct delivery *delivery)
{
    if (delivery->kind->max_in_flight == 0) {
        return KIND_PLACE_TAKEN;
    }
    struct kind_queue *queue = queue_of(delivery);

    if (!queue->first && queue->running < delivery->kind->max_in_flight) {
        delivery->place = DELIVERY_HAS_PLACE;
        queue->running++;
        return KIND_PLACE_TAKEN;
    }
    if (queue->waiting >= WAITING_MAX || delivery->worker->is_draining ||
        is_before_its_turn(queue, delivery)) {
        queue->sent_away_mono_ms = clock_mono_ms();
        return KIND_PLACE_NONE;
    }
    append(queue, delivery);
    uv_timer_start(&delivery->repeat, on_waited_enough, WAIT_AT_MOST_MS, 0);
    return KIND_PLACE_WAITING;
}

void kind_place_leave(struct delivery *delivery)
{
    if (delivery->place == DELIVERY_HAS_NO_PLACE) {
        return;
    }
    struct kind_queue *queue = queue_of(delivery);

    if (delivery->place == DELIVERY_WAITS_FOR_PLACE) {
        uv_timer_stop(&delivery->repeat);
        take_out(queue, delivery);
        return;
    }
    delivery->place = DELIVERY_HAS_NO_PLACE;
    queue->running--;
    hand_on(queue);
}

void kind_places_stop(struct kind_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        for (struct delivery *at = places->queues[i].first; at; at = at->next_waiting) {
            uv_timer_start(&at->repeat, on_waited_enough, 0, 0);
        }
    }
}
