/* What the workers of this node know about targets together: each one's circuit and its rate. Only
 * targets that have failed, or that a rate holds, stand in it; a target that it has no room for is
 * asked as if nothing were known. Any process reads and writes any cell: a wrong byte costs a wait
 * (bounded by the limits) or a request too many, nothing else. Contract §3 Claim, §9. */
#ifndef COMMON_SHM_TARGET_TABLE_H
#define COMMON_SHM_TARGET_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/circuit.h"

struct shm;

struct target_limits {
    struct circuit_limits circuit;
    uint32_t per_second; /* 0: no limit */
};

enum target_answer {
    TARGET_MAY_BE_ASKED,
    TARGET_CIRCUIT_WAITS,
    TARGET_RATE_WAITS,
};
struct target_permit {
    enum target_answer answer;
    int64_t wait_ns; /* if it waits: above 0 */
    /* The circuit's state before and after. */
    enum circuit_state before, after;
};
struct target_change {
    enum circuit_state before, after;
};

/* The name by which a target is known here: of its base URL, with or without slashes at its end. */
uint64_t target_table_key(const struct shm *shm, const char *url);
/* May one request go now? Then it is counted in, and where the circuit was open it is the one that
 * finds out. `now_ns`: CLOCK_MONOTONIC, the same for all processes. */
struct target_permit target_table_ask(struct shm *shm, uint64_t key,
                                      const struct target_limits *limits, int64_t now_ns);
/* What became of a request: CIRCUIT_HAS_ANSWERED or CIRCUIT_HAS_FAILED, in milliseconds of the same
 * clock. */
struct target_change target_table_tell(struct shm *shm, uint64_t key,
                                       const struct target_limits *limits,
                                       const struct circuit_input *input);

/* As it stands; also of a read-only segment. What nobody asked for ten minutes counts as closed. */
enum circuit_state target_table_state(const struct shm *shm, uint64_t key, int64_t now_ns);
/* How many circuits are in each state but closed. */
void target_table_count(const struct shm *shm, int64_t now_ns, size_t ret[CIRCUIT_STATE_COUNT]);

#endif
