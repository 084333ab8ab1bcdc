/* What follows from an outcome: (status, counters, outcome, limits) -> new status, counters, delay,
 * event. Pure: no I/O, no clock, no randomness of its own. The table is lifecycle.def; contract §3.
 */
#ifndef COMMON_CORE_LIFECYCLE_H
#define COMMON_CORE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

enum entry_status {
#define STATUS(id, name) STATUS_##id,
#include "common/core/lifecycle.def"
    STATUS_COUNT,
    STATUS_ENDED = STATUS_COUNT, /* only as a result: the entry leaves the store */
};

enum outcome {
#define OUTCOME(id, name) OUTCOME_##id,
#include "common/core/lifecycle.def"
    OUTCOME_COUNT,
};

enum error_code {
    CODE_NONE,
#define ERROR_CODE(id, name) CODE_##id,
#include "common/core/lifecycle.def"
    CODE_COUNT,
    CODE_FROM_TARGET = CODE_COUNT, /* the problem code that the target (or the caller) gave */
};

enum entry_event {
    EVENT_NONE,
    EVENT_SENT,
    EVENT_VERIFYING,
    EVENT_RETRYING,
    EVENT_ERROR,
};

/* The counters of one entry that decisions depend on. Names of contract §3. */
struct lifecycle_state {
    enum entry_status status;
    uint32_t attempts;
    uint32_t verify_attempts;
    uint32_t transient_fails;
};

/* Limits in force for the entry's kind. Times in milliseconds. */
struct lifecycle_limits {
    uint32_t max_attempts;
    uint32_t max_verify_attempts;
    uint32_t max_transient_fails;
    int64_t retry_for_ms; /* 0: for ever */
    int64_t retry_backoff_ms, max_backoff_ms;
    bool full_jitter;
    int64_t verify_delay_ms, verify_backoff_ms, max_verify_backoff_ms;
    int64_t repoll_after_ms;
};

/* What happened. */
struct lifecycle_input {
    enum outcome outcome;
    int64_t retry_after_ms; /* <0: the target gave none. Already clamped (backoff_retry_after) */
    int64_t since_first_claim_ms; /* for RETRY_WINDOW */
    int64_t settle_left_ms;       /* for TOO_EARLY: until verify_settle has passed */
    uint32_t random;              /* uniformly random, for jitter */
};

/* What follows. `delay_ms` counts from now; <0: not due until somebody acts. */
struct lifecycle_step {
    struct lifecycle_state state; /* status may be STATUS_ENDED */
    int64_t delay_ms;
    enum error_code code; /* CODE_NONE unless state.status is STATUS_ERROR */
    enum entry_event event;
};

/* Applies one outcome. Returns 0 and fills *ret_step, or -EINVAL where the table has no row for
 * (status, outcome): then nothing is written. */
int lifecycle_apply(const struct lifecycle_state *state, const struct lifecycle_input *input,
                    const struct lifecycle_limits *limits, struct lifecycle_step *ret_step);

/* Names as in the store and the API; static strings. Out-of-range numbers give "invalid". */
const char *entry_status_name(enum entry_status status);
const char *outcome_name(enum outcome outcome);
const char *error_code_name(enum error_code code);
/* Returns 0 and fills *ret, or -EINVAL for a name that is none. `len` bytes, need not end in NUL.
 */
int entry_status_from_name(const char *name, uint64_t len, enum entry_status *ret);

#endif
