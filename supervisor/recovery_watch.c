/* The periodic part: a few partitions every quarter of a second, all of them every two. Takes back
 * locks past their deadline whoever owns them, those of dead processes of this node, and those of
 * other nodes' dead generations; raises our own counter; removes lock files that nothing names any
 * more; looks for what no claim would find. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "common/base/log.h"
#include "supervisor/recovery_private.h"

#define TICK_MS             250
#define PARTITIONS_PER_TICK 8

/* ---- other nodes' counters ---- */

struct reading {
    struct recovery *recovery;
    char node[NODE_NAME_MAX + 1];
    uint64_t generation;
    int64_t asked_ms;
};

static void on_counter(enum store_result result, bool exists, int64_t counter, void *arg)
{
    struct reading *reading = arg;

    if (result == STORE_OK) {
        node_watch_counter(&reading->recovery->nodes, reading->node, reading->generation,
                           exists ? counter : 0, reading->asked_ms, clock_mono_ms());
    } else {
        node_watch_reset(&reading->recovery->nodes); /* we have not seen everything */
    }
    free(reading);
}

static void read_counters(struct recovery *recovery)
{
    for (size_t i = 0; i < recovery->nodes.count; i++) {
        const struct watched_node *watched = &recovery->nodes.nodes[i];
        struct reading *reading = malloc(sizeof(*reading));

        if (!reading) {
            return; /* next time */
        }
        *reading = (struct reading){
            .recovery = recovery,
            .generation = watched->generation,
            .asked_ms = clock_mono_ms(),
        };
        memcpy(reading->node, watched->node, sizeof(reading->node));
        store_read_beat(recovery->options.store, reading->node, reading->generation, on_counter,
                        reading);
    }
}

static void on_beaten(enum store_result result, bool yes, void *arg)
{
    (void)result; /* the next beat comes in two seconds; workers validate their tokens meanwhile */
    (void)yes;
    (void)arg;
}

/* ---- lock files ---- */

static void note_free_lock(uint64_t number, uint32_t slot, bool is_free, void *arg)
{
    struct recovery_cycle *cycle = arg;

    if (is_free && cycle->stale_count < STALE_LOCKS_MAX) {
        cycle->stale[cycle->stale_count++] =
            (struct stale_lock){.generation = number, .slot = slot};
    }
}

static void note_named(struct recovery_cycle *cycle, const struct token_parts *token)
{
    for (size_t i = 0; i < cycle->stale_count; i++) {
        if (cycle->stale[i].generation == token->generation &&
            cycle->stale[i].slot == token->slot) {
            cycle->stale[i].is_named = true;
        }
    }
}

/* Only files that were free before the cycle began: their processes were dead then and can't have
 * claimed since. */
static void remove_unnamed(struct recovery *recovery)
{
    struct recovery_cycle *cycle = &recovery->cycle;

    for (size_t i = 0; i < cycle->stale_count && !cycle->has_failed; i++) {
        if (!cycle->stale[i].is_named) {
            generation_remove_lock(recovery->options.generation, cycle->stale[i].generation,
                                   cycle->stale[i].slot);
        }
    }
}

/* ---- the cycle ---- */

static int judge_any(struct sweep *sweep, const struct held_session *held)
{
    struct recovery *recovery = sweep->recovery;
    struct token_parts token;

    if (held->token.len == 0) {
        return LABEL_RECOVERY_REASON_UNLOCKED;
    }
    if (held->deadline_ms <= held->now_ms) {
        return LABEL_RECOVERY_REASON_EXPIRED;
    }
    if (lock_token_parse(held->token.ptr, held->token.len, &token) < 0) {
        return -1; /* not ours to read: expiry gets it */
    }
    note_named(&recovery->cycle, &token);
    const int is_dead = recovery_is_dead_here(recovery, &token);
    if (is_dead == 1) {
        return LABEL_RECOVERY_REASON_WORKER_DIED;
    }
    if (is_dead != -ENOENT) {
        return -1; /* lives, or can't be told now */
    }
    node_watch_see(&recovery->nodes, token.node, token.generation);
    return node_watch_is_dead(&recovery->nodes, token.node, token.generation)
               ? LABEL_RECOVERY_REASON_NODE_DIED
               : -1;
}

static void begin_cycle(struct recovery *recovery)
{
    const struct generation *own = recovery->options.generation;

    store_beat(recovery->options.store, own->node, own->number, on_beaten, NULL);
    read_counters(recovery);
    recovery->cycle.has_failed = false;
    recovery->cycle.stale_count = 0;
    generation_each_lock(own, note_free_lock, &recovery->cycle);
}

static void part_done(struct sweep *sweep)
{
    struct recovery *recovery = sweep->recovery;
    struct recovery_cycle *cycle = &recovery->cycle;

    if (recovery->is_stopped) {
        return;
    }
    cycle->has_failed = cycle->has_failed || sweep->failures > 0;
    if (sweep->recovered > 0) {
        log_info("took back sessions", "sessions", LOG_I64(sweep->recovered));
    }
    cycle->next_partition = (cycle->next_partition + PARTITIONS_PER_TICK) % PARTITION_COUNT;
    if (cycle->next_partition == 0) {
        remove_unnamed(recovery);
        node_watch_forget_unseen(&recovery->nodes);
        metrics_loop_ran(recovery->options.metrics, LABEL_LOOP_SUPERVISOR, clock_wall_ms());
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct recovery *recovery = timer->data;
    struct recovery_cycle *cycle = &recovery->cycle;

    /* While the store is away or slow nothing piles up; the cycle goes on where it stands. */
    if (cycle->sweep.outstanding > 0 || !store_is_up(recovery->options.store)) {
        return;
    }
    if (cycle->next_partition == 0) {
        begin_cycle(recovery);
    }
    recovery_audit(recovery, cycle->next_partition, PARTITIONS_PER_TICK);
    sweep_start(&cycle->sweep, cycle->next_partition, PARTITIONS_PER_TICK);
}

void recovery_watch(struct recovery *recovery)
{
    recovery->cycle.sweep =
        (struct sweep){.recovery = recovery, .judge = judge_any, .done = part_done};
    (void)uv_timer_init(recovery->options.loop, &recovery->cycle.timer); /* never fails */
    recovery->cycle.timer.data = recovery;
    recovery->is_watching = true;
    uv_timer_start(&recovery->cycle.timer, on_tick, 0,
                   TICK_MS); /* can't fail: has a callback, isn't closing */
}

void recovery_connection_lost(struct recovery *recovery)
{
    node_watch_reset(&recovery->nodes);
}

void recovery_stop(struct recovery *recovery)
{
    if (!recovery) {
        return;
    }
    recovery->is_stopped = true;
    if (recovery->is_watching) {
        recovery->is_watching = false;
        uv_close((uv_handle_t *)&recovery->cycle.timer, NULL);
    }
}
