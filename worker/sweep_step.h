/* What a sweep makes of an `error` entry that it has looked up. Pure. Contract §3 Sweeps, §5. */
#ifndef WORKER_SWEEP_STEP_H
#define WORKER_SWEEP_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/lookup.h"

struct sweep_subject {
    bool is_ledger;       /* else: the look-up of another executor */
    bool is_unverifiable; /* the error's code */
    uint32_t attempts, max_attempts;
};

enum sweep_action {
    SWEEP_COMPLETE,     /* the target has it */
    SWEEP_TO_PENDING,   /* due now */
    SWEEP_TO_VERIFYING, /* due now, with a fresh window */
    SWEEP_STAY,
    SWEEP_NOTHING_KNOWN, /* stays, and nothing was learnt: the next pass asks again */
};
struct sweep_step {
    enum sweep_action action;
    uint32_t attempts; /* the count from now on */
};

struct sweep_step sweep_step(const struct sweep_subject *subject, enum lookup_verdict verdict);

#endif
