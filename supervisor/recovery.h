/* Taking back what dead processes held: at start, when a child dies, and every few seconds whatever
 * is left (contract §8). Everything is found by token in the store, never by what stands in shared
 * memory. Loop thread only.
 *
 * The jobs repeat themselves until the store has answered everything; every step is idempotent. */
#ifndef SUPERVISOR_RECOVERY_H
#define SUPERVISOR_RECOVERY_H

#include <stddef.h>
#include <stdint.h>

#include "common/shm/metrics.h"
#include "supervisor/generation.h"

struct uv_loop_s;
struct store;
struct recovery;

struct recovery_options {
    struct uv_loop_s *loop;
    struct store *store; /* outlives the recovery's last callback: close it before destroying */
    const struct generation *generation; /* outlives the recovery */
    struct metrics *metrics;             /* may be NULL */
    /* Sessions of that partition are due again. */
    void (*recovered)(uint32_t partition, void *arg);
    void *arg;
};

/* 0 or -ENOMEM. */
int recovery_create(struct recovery **ret, const struct recovery_options *options);
/* Everything that dead processes of this node held; those whose lock file is held still keep
 * theirs. `done` runs once, when a whole pass got through. */
void recovery_at_start(struct recovery *recovery, void (*done)(void *arg), void *arg);
/* A child of ours was reaped: what it held is due now. */
void recovery_of_process(struct recovery *recovery, uint64_t generation, uint32_t slot,
                         uint64_t incarnation);
/* From now on: beats, expired locks, dead nodes, children of dead supervisors. */
void recovery_watch(struct recovery *recovery);
/* The store's connection broke: observations of other nodes start anew. */
void recovery_connection_lost(struct recovery *recovery);
/* No more timers; jobs under way are dropped at their next answer. Then close the store, run the
 * loop, destroy. */
void recovery_stop(struct recovery *recovery);
void recovery_destroy(struct recovery **recovery);

#endif
