/* A store filled for the claim benchmark: many sessions whose one entry is not due (backed off, or
 * error), and a few that are due, all in one partition. Half of the sessions in the workspace of
 * the due ones, the others ten to a workspace, so that both indexes of a claim grow. */
#ifndef TESTS_BENCH_CLAIM_FILL_H
#define TESTS_BENCH_CLAIM_FILL_H

#include <stdint.h>

#include "common/core/keys.h"

#define CLAIM_PARTITION partition_of("bench", 5)

struct bench_store;

/* The sessions that wait; then, when asked, those that are due. */
void claim_fill(struct bench_store *s, unsigned sessions);
void claim_fill_due(struct bench_store *s, unsigned sessions, unsigned due);
/* `count` more entries, each behind the one that waits in its session; some are due at once.
 * `number` is how many this store got before. */
void claim_fill_behind(struct bench_store *s, unsigned sessions, unsigned number, unsigned count);

#endif
