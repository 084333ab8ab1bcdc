/* Whether a target is asked after it has failed. A pure state machine; its table is circuit.def.
 * Contract §3, Claim: no dead target starves a healthy one. */
#ifndef COMMON_CORE_CIRCUIT_H
#define COMMON_CORE_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

enum circuit_state {
#define STATE(id, name) CIRCUIT_##id,
#include "common/core/circuit.def"
    CIRCUIT_STATE_COUNT,
};

/* All zero: closed, nothing has failed. Times in one clock's milliseconds. */
struct circuit {
    enum circuit_state state;
    uint8_t failures; /* in a row */
    uint8_t opens;    /* in a row, without an answer between */
    uint8_t mark;     /* of the message that failed last; 0: none */
    int64_t at_ms;    /* closed: since; else: until a request may find out whether it is back */
};

struct circuit_limits {
    uint32_t failures;        /* in a row that open it, at most 255; 0: it never opens */
    int64_t delay_ms, max_ms; /* how long it is open: the first time, doubling up to max_ms */
};

struct circuit_input {
    enum { CIRCUIT_WAS_ASKED, CIRCUIT_HAS_ANSWERED, CIRCUIT_HAS_FAILED } what;
    int64_t now_ms;
    /* Of the last two: when that request began, and whose it was (circuit_mark). */
    int64_t began_ms;
    uint8_t mark;
    bool may_be_own_fault; /* the message may have brought the failure about */
};

struct circuit_step {
    struct circuit next;
    bool may_go;     /* for CIRCUIT_WAS_ASKED */
    int64_t wait_ms; /* if not: until it is worth asking again; above 0 */
};

/* A time too far away (in a state that somebody else wrote) counts as the longest that there is. */
struct circuit_step circuit_step(const struct circuit *circuit, const struct circuit_input *input,
                                 const struct circuit_limits *limits);
/* A short name for a message: 1 to 255, or 0 for an empty one. Two may have the same. */
uint8_t circuit_mark(const char *name, uint64_t len);
/* "closed", "open", "half_open". */
const char *circuit_state_name(enum circuit_state state);

#endif
