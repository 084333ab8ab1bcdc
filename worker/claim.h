/* What this worker takes, and when: hints and timers mark partitions, each is read at least once a
 * second, capacity and fairness limit what is asked for. Contract §3 Claim, §8 Index discipline. */
#ifndef WORKER_CLAIM_H
#define WORKER_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/span.h"

struct worker;
struct scheduler;

int scheduler_create(struct worker *worker, struct scheduler **ret);
/* Stops taking; outstanding claims still come back (and are given back). */
void scheduler_stop(struct scheduler *scheduler);
/* Closes its timer; nothing may be outstanding. NULL is fine. */
void scheduler_close(struct scheduler *scheduler);
/* Frees; after the loop has ended. */
void scheduler_destroy(struct scheduler **scheduler);

/* The partition has work now, or after a delay (ms; <0: nothing to note). */
void scheduler_mark(struct scheduler *scheduler, uint32_t partition);
void scheduler_mark_later(struct scheduler *scheduler, uint32_t partition, int64_t delay_ms);
/* All partitions are to be read. */
void scheduler_mark_all(struct scheduler *scheduler);
/* A place became free: work that waited for room, or for its workspace's share, is asked for. */
void scheduler_place_freed(struct scheduler *scheduler);
/* Whether a session of this workspace may go on to its next entry in its place: not while others
 * wait for one. */
bool scheduler_may_chain(const struct scheduler *scheduler, struct span workspace);
/* Claims whose answers are still to come. */
uint32_t scheduler_outstanding(const struct scheduler *scheduler);
/* Keeps a partition from being claimed from (while reconciliation looks at it), and lets it go
 * again. */
void scheduler_hold(struct scheduler *scheduler, uint32_t partition);
void scheduler_unhold(struct scheduler *scheduler, uint32_t partition);
bool scheduler_is_claiming(const struct scheduler *scheduler, uint32_t partition);

#endif
