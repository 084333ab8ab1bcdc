/* The rules. */
#include "worker/sweep_step.h"

/* The target proved that it has not got it. */
static struct sweep_step step_of_absence(const struct sweep_subject *subject, bool has_failed)
{
    struct sweep_step step = {SWEEP_STAY, subject->attempts};
    const uint32_t adopted = subject->attempts + (has_failed && subject->attempts < UINT32_MAX);
    const bool has_budget = adopted < subject->max_attempts;

    if (subject->is_unverifiable && (has_budget || !subject->is_ledger)) {
        step.action = SWEEP_TO_VERIFYING; /* which counts the attempt, so that it is not adopted */
        return step;
    }
    step.attempts = adopted;
    step.action = has_budget ? SWEEP_TO_PENDING : SWEEP_STAY;
    return step;
}

struct sweep_step sweep_step(const struct sweep_subject *subject, enum lookup_verdict verdict)
{
    struct sweep_step step = {SWEEP_NOTHING_KNOWN, subject->attempts};

    switch (verdict) {
    case LOOKUP_DELIVERED:
        step.action = SWEEP_COMPLETE;
        break;
    case LOOKUP_PRIOR_PENDING:
        step.action = SWEEP_STAY;
        break;
    case LOOKUP_REFUSED:
        return step_of_absence(subject, true);
    case LOOKUP_ABSENT:
        return step_of_absence(subject, false);
    case LOOKUP_INCONCLUSIVE:
    case LOOKUP_BROKEN:
        break;
    }
    return step;
}
