/* A store filled for the claim benchmark: many sessions whose one entry is not due (backed off, or
 * error), and a few that are due, all in one partition. Half of the sessions in the workspace of
 * the due ones, the others ten to a workspace, so that both indexes of a claim grow. */
#ifndef TESTS_BENCH_CLAIM_FILL_H
#define TESTS_BENCH_CLAIM_FILL_H

#include <stdint.h>

#include "common/core/ids.h"
#include "common/store/store.h"

#define CLAIM_LOCK_TTL_MS 600000
#define CLAIM_PARTITION   partition_of("bench", 5)

struct uv_loop_s;

/* One store with its loop. Benchmark only: every trouble ends the program. */
struct bench_store {
    struct uv_loop_s *loop; /* owned */
    struct store *store;
    uint64_t outstanding, claims_made;
};

struct bench_store *bench_store_open(const char *socket_path);
void bench_store_close(struct bench_store *s);
/* Runs the loop until at most `most` calls are without an answer. */
void bench_store_wait(struct bench_store *s, uint64_t most);
/* A token that no other claim has. */
struct lock_token bench_store_token(struct bench_store *s);

/* The sessions that wait; then, when asked, those that are due. */
void claim_fill(struct bench_store *s, unsigned sessions);
void claim_fill_due(struct bench_store *s, unsigned sessions, unsigned due);

#endif
