/* The worker's sweep: `error` entries whose target may have settled them meanwhile are looked up
 * once more, every parked_sweep_interval and when a hint asks for it. Beside deliveries: no session
 * is locked, none waits. Contract §3 Sweeps, §5. */
#ifndef WORKER_SWEEP_H
#define WORKER_SWEEP_H

#include <stdint.h>

struct worker;
struct sweep;

int sweep_create(struct worker *worker, struct sweep **ret);
/* Frees; nothing may be outstanding. NULL is fine. */
void sweep_destroy(struct sweep **sweep);

/* Goes on: to be called every half second or so while the store is there. */
void sweep_tick(struct sweep *sweep);
/* Something of the partition may be to be looked at: at most once a second. A number that is no
 * partition is ignored. */
void sweep_hint(struct sweep *sweep, uint32_t partition);
/* Begins nothing more; what runs ends by itself, and the worker is told (worker_check_drained). */
void sweep_stop(struct sweep *sweep);
/* Look-ups and store calls whose answers are still to come. */
uint32_t sweep_outstanding(const struct sweep *sweep);

#endif
