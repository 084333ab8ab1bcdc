/* Tells a worker that a session is due, so that it need not wait for its next look at the index.
 * Sessions map to a preferred worker, so that in the normal case no lock is contended. Only a hint:
 * a lost or wrong one costs latency. Contract §9. */
#ifndef API_HINTS_H
#define API_HINTS_H

#include <stdint.h>

#include "common/core/span.h"
#include "common/shm/wake.h"

struct hints {
    struct shm *shm;
    struct wake_set wakes;
    uint32_t workers[SHM_WORKER_SLOTS_MAX]; /* slots that are ready */
    uint32_t worker_count;
};

/* Takes the inherited eventfds. */
void hints_init(struct hints *hints, struct shm *shm);
void hints_done(struct hints *hints);
/* Looks again which workers are ready; and drops what workers told us (nobody here needs it yet).
 */
void hints_refresh(struct hints *hints);
void hints_send(struct hints *hints, struct span workspace, struct span session);

#endif
