/* The table. */
#include "worker/lookup_step.h"

#define RECORD(outcome_)                                                                           \
    {                                                                                              \
        LOOKUP_THEN_RECORD, OUTCOME_##outcome_, false                                              \
    }

static const struct lookup_step steps[LOOKUP_REASON_COUNT][LOOKUP_BROKEN + 1] =
    {
        [LOOKUP_FOR_CLAIMED_SEND] =
            {
                [LOOKUP_DELIVERED] = RECORD(CONFIRMED),
                [LOOKUP_ABSENT] = {LOOKUP_THEN_REQUEST, OUTCOME_ABSENT, true},
                [LOOKUP_REFUSED] = RECORD(REJECTED),
                [LOOKUP_PRIOR_PENDING] = RECORD(PRIOR_PENDING),
                [LOOKUP_INCONCLUSIVE] = RECORD(AMBIGUOUS),
                [LOOKUP_BROKEN] = RECORD(FAILED),
            },
        [LOOKUP_FOR_RESEND] =
            {
                [LOOKUP_DELIVERED] = RECORD(CONFIRMED),
                [LOOKUP_ABSENT] = {LOOKUP_THEN_BEGIN_SEND, OUTCOME_ABSENT, true},
                [LOOKUP_REFUSED] = RECORD(REJECTED),
                [LOOKUP_PRIOR_PENDING] = RECORD(PRIOR_PENDING),
                [LOOKUP_INCONCLUSIVE] = RECORD(INCONCLUSIVE),
                [LOOKUP_BROKEN] = RECORD(FAILED),
            },
        [LOOKUP_FOR_VERIFYING] =
            {
                [LOOKUP_DELIVERED] = RECORD(CONFIRMED),
                [LOOKUP_ABSENT] = {LOOKUP_THEN_RECORD, OUTCOME_ABSENT, true},
                [LOOKUP_REFUSED] = RECORD(ABSENT),
                [LOOKUP_PRIOR_PENDING] = RECORD(PRIOR_PENDING),
                [LOOKUP_INCONCLUSIVE] = RECORD(INCONCLUSIVE),
                [LOOKUP_BROKEN] = RECORD(FAILED),
            },
        /* As long as it takes: a question without an answer drives nothing. */
        [LOOKUP_FOR_POLL] =
            {
                [LOOKUP_DELIVERED] = RECORD(CONFIRMED),
                [LOOKUP_ABSENT] = RECORD(ABSENT),
                [LOOKUP_REFUSED] = RECORD(REJECTED),
                [LOOKUP_PRIOR_PENDING] = RECORD(PRIOR_PENDING),
                [LOOKUP_INCONCLUSIVE] = RECORD(PRIOR_PENDING),
                [LOOKUP_BROKEN] = RECORD(FAILED),
            },
};

struct lookup_step lookup_step(enum lookup_reason reason, enum lookup_verdict verdict,
                               bool is_reached)
{
    struct lookup_step step = steps[reason][verdict];

    /* Nothing has become unknown: a target that is away is not reached, as by an attempt. */
    if (reason == LOOKUP_FOR_RESEND && verdict == LOOKUP_INCONCLUSIVE && !is_reached) {
        step.outcome = OUTCOME_TRANSIENT;
    }
    return step;
}
