/* Finds sessions that are locked for this slot and that no delivery of ours knows: claims whose
 * answers were lost (given back unsent), and what an earlier process in this slot held (recovered:
 * we hold the slot's lock, so it is dead). Runs at start, after every lost connection, and slowly
 * all the time. Contract §2, last paragraphs; §8. */
#ifndef WORKER_RECONCILE_H
#define WORKER_RECONCILE_H

#include <stdint.h>

struct worker;
struct reconcile;

int reconcile_create(struct worker *worker, struct reconcile **ret);
void reconcile_destroy(struct reconcile **reconcile);
/* Looks at all partitions (again). Each is claimed from only once it was looked at. */
void reconcile_start(struct reconcile *reconcile);
/* Looks at one partition: a claim there may have locked what its answer did not name. */
void reconcile_partition(struct reconcile *reconcile, uint32_t partition);
/* Tries again where the store did not answer; called now and then. */
void reconcile_retry(struct reconcile *reconcile);
/* Looks at the next few partitions, called with each heartbeat: what a lost connection had sent may
 * reach the store long after the look that followed the reconnect, when a network held it back. */
void reconcile_look_around(struct reconcile *reconcile);
/* The scheduler: a claim's answer came, so that its partition can be looked at now if it waits for
 * that. */
void reconcile_claim_came_back(struct reconcile *reconcile, uint32_t partition);

#endif
