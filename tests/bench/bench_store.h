/* One store with its loop, for the benchmark's programs that fill it by the calls the daemon makes.
 * Benchmark only: every trouble ends the program. */
#ifndef TESTS_BENCH_BENCH_STORE_H
#define TESTS_BENCH_BENCH_STORE_H

#include <stdint.h>

#include "common/core/ids.h"
#include "common/core/span.h"
#include "common/store/store.h"

#define BENCH_LOCK_TTL_MS    600000
#define BENCH_CLAIMS_AT_ONCE 64
#define BENCH_NODE           "bench" /* in the tokens: whoever should take back what they hold */

struct uv_loop_s;

struct bench_store {
    struct uv_loop_s *loop; /* owned */
    struct store *store;
    uint64_t outstanding, claims_made;
};

struct bench_store *bench_store_open(const char *socket_path);
void bench_store_close(struct bench_store *s);
/* Runs the loop until at most `most` calls are without an answer. */
void bench_store_wait(struct bench_store *s, uint64_t most);
/* Ends the program: a call was not answered as it must be. */
void bench_store_fail(const char *what, enum store_result result);

/* Accepts one entry of the kind `bench`, strict and idempotent, with an ID made of `number`.
 * Returns before its answer; waits only while many are without one. */
void bench_store_accept(struct bench_store *s, const char *workspace, const char *session,
                        uint64_t number, struct span text);
/* Claims what is due in a partition until nothing is; each claim goes to `claimed`, which may make
 * calls (count them in s->outstanding). Returns how many there were, all calls answered. */
uint64_t bench_store_claim_all(struct bench_store *s, uint32_t partition,
                               void (*claimed)(struct bench_store *s, const struct claim *claim));
/* A token that no other claim has; its process does not live. */
struct lock_token bench_store_token(struct bench_store *s);

#endif
