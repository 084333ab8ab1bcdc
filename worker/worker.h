/* One delivery worker: what its parts share. worker.c wires it; claim.c decides what to take;
 * delivery.c carries one entry through; reconcile.c finds what a lost answer left locked. Loop
 * thread only. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/inherit.h"
#include "common/base/settings.h"
#include "common/core/ids.h"
#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/shm/wake.h"
#include "common/store/store.h"
#include "worker/http_request.h"

struct held;
struct kind_places;
struct scheduler;
struct transfers;
struct address_rules;
struct reconcile;
struct sweep;
struct target_gate;

struct worker {
    uv_loop_t *loop;
    struct inherit_args args;
    const struct settings *settings;
    struct shm *shm;
    struct metrics *metrics;
    struct wake_set wakes;
    struct store *store;
    struct address_rules *address_rules;
    struct transfers *transfers;
    struct held *held;
    struct kind_places *kind_places;
    struct target_gate *target_gate;
    struct scheduler *scheduler;
    struct reconcile *reconcile;
    struct sweep *sweep;
    struct target target; /* the default one */
    int64_t lock_ttl_ms;
    int64_t
        beat_acked_boot_ms; /* when the beat that the store acknowledged last was sent; 0: never */
    uint64_t next_claim;    /* number in the next token */
    uint32_t detached;      /* deliveries whose session is held by another one now */
    uint32_t giving_back;   /* claims on their way back to the store, held by no delivery */
    bool is_draining;

    uv_signal_t on_term, on_reopen;
    uv_poll_t on_lifeline, on_wake;
    uv_timer_t heartbeat, beat, deadline;
    bool has_said_ready;
};

/* A token that no other claim has. */
struct lock_token worker_next_token(struct worker *worker);
/* Runs until it has drained. Returns the exit status. */
int worker_run(const struct inherit_args *args, const struct settings *settings);
/* Told by the scheduler once every partition was read: it can serve. */
void worker_is_ready(struct worker *worker);
/* Told whenever a delivery ended or a call came back: a draining worker that holds nothing stops.
 */
void worker_check_drained(struct worker *worker);

#endif
