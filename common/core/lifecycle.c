/* Expands the rows of lifecycle.def into [status][outcome] and applies one of them. Contract §3.
 * No rule of a kind stands here (idempotent or not): that is decided by what the outcome is called.
 */
#include "common/core/lifecycle.h"

#include <errno.h>
#include <string.h>

#include "common/core/backoff.h"

enum counts {
    COUNTS_NOTHING,
    COUNTS_ATTEMPT,
    COUNTS_VERIFY_ATTEMPT,
    COUNTS_TRANSIENT,
    COUNTS_RETRY_WINDOW, /* counts an attempt, used up by time */
};

enum due {
    DUE_NOW,
    DUE_BACKOFF,
    DUE_VERIFY_DELAY,
    DUE_VERIFY_BACKOFF,
    DUE_REPOLL,
    DUE_SETTLE,
    DUE_NEVER,
};

struct transition {
    bool exists; /* false: no such transition */
    enum counts counts;
    enum entry_status next, when_used_up;
    enum due due;
    enum entry_event event;
};

/* A second row for a pair is a compile error (-Woverride-init). */
static const struct transition transitions[STATUS_COUNT][OUTCOME_COUNT] = {
#define TRANSITION(from, outcome, counts_, next_, when_used_up_, due_, event_)                     \
    [STATUS_##from][OUTCOME_##outcome] = {                                                         \
        .exists = true,                                                                            \
        .counts = COUNTS_##counts_,                                                                \
        .next = STATUS_##next_,                                                                    \
        .when_used_up = STATUS_##when_used_up_,                                                    \
        .due = DUE_##due_,                                                                         \
        .event = EVENT_##event_,                                                                   \
    },
#include "common/core/lifecycle.def"
};

/* The code of an `error` that a limit brought about … */
static const enum error_code code_by_counts[] = {
    [COUNTS_NOTHING] = CODE_NONE,
    [COUNTS_ATTEMPT] = CODE_ATTEMPTS_EXHAUSTED,
    [COUNTS_VERIFY_ATTEMPT] = CODE_UNVERIFIABLE,
    [COUNTS_TRANSIENT] = CODE_UNREACHABLE,
    [COUNTS_RETRY_WINDOW] = CODE_RETRIES_EXHAUSTED,
};

/* … and of one that the outcome itself is. */
static enum error_code code_by_outcome(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_CONFLICT:
        return CODE_CONFLICT;
    case OUTCOME_UNKNOWN:
        return CODE_OUTCOME_UNKNOWN;
    case OUTCOME_FAILED:
        return CODE_FROM_TARGET;
    case OUTCOME_CONFIRMED:
    case OUTCOME_AMBIGUOUS:
    case OUTCOME_RETRY:
    case OUTCOME_REJECTED:
    case OUTCOME_TRANSIENT:
    case OUTCOME_PRIOR_PENDING:
    case OUTCOME_ABSENT:
    case OUTCOME_INCONCLUSIVE:
    case OUTCOME_TOO_EARLY:
    case OUTCOME_COUNT:
        break;
    }
    return CODE_NONE;
}

/* Counts one more (never past the end) and says whether the limit is reached. */
static bool count_up(uint32_t *counter, uint32_t limit)
{
    if (*counter < UINT32_MAX) {
        (*counter)++;
    }
    return *counter >= limit;
}

static bool count(enum counts counts, struct lifecycle_state *state,
                  const struct lifecycle_input *input, const struct lifecycle_limits *limits)
{
    switch (counts) {
    case COUNTS_NOTHING:
        return false;
    case COUNTS_ATTEMPT:
        return count_up(&state->attempts, limits->max_attempts);
    case COUNTS_VERIFY_ATTEMPT:
        return count_up(&state->verify_attempts, limits->max_verify_attempts);
    case COUNTS_TRANSIENT:
        return count_up(&state->transient_fails, limits->max_transient_fails);
    case COUNTS_RETRY_WINDOW:
        (void)count_up(&state->attempts, UINT32_MAX); /* bounded by time, not by number */
        return limits->retry_for_ms > 0 && input->since_first_claim_ms >= limits->retry_for_ms;
    }
    return false;
}

static int64_t backoff_for(uint32_t tries, const struct lifecycle_input *input,
                           const struct lifecycle_limits *limits)
{
    if (input->retry_after_ms >= 0) {
        return backoff_after_floor_ms(input->retry_after_ms, tries, limits->retry_backoff_ms,
                                      limits->max_backoff_ms, limits->full_jitter, input->random);
    }
    return backoff_delay_ms(tries, limits->retry_backoff_ms, limits->max_backoff_ms,
                            limits->full_jitter, input->random);
}

static int64_t delay_for(const struct transition *t, const struct lifecycle_state *state,
                         const struct lifecycle_input *input, const struct lifecycle_limits *limits)
{
    switch (t->due) {
    case DUE_NOW:
        return 0;
    case DUE_BACKOFF:
        return backoff_for(t->counts == COUNTS_TRANSIENT ? state->transient_fails : state->attempts,
                           input, limits);
    case DUE_VERIFY_DELAY:
        return limits->verify_delay_ms;
    case DUE_VERIFY_BACKOFF:
        return backoff_delay_ms(state->verify_attempts, limits->verify_backoff_ms,
                                limits->max_verify_backoff_ms, false, 0);
    case DUE_REPOLL:
        return limits->repoll_after_ms;
    case DUE_SETTLE:
        return input->settle_left_ms > 0 ? input->settle_left_ms : 0;
    case DUE_NEVER:
        break;
    }
    return -1;
}

int lifecycle_apply(const struct lifecycle_state *state, const struct lifecycle_input *input,
                    const struct lifecycle_limits *limits, struct lifecycle_step *ret_step)
{
    if ((unsigned)state->status >= STATUS_COUNT || (unsigned)input->outcome >= OUTCOME_COUNT) {
        return -EINVAL;
    }
    const struct transition *t = &transitions[state->status][input->outcome];
    if (!t->exists) {
        return -EINVAL;
    }
    struct lifecycle_step step = {.state = *state, .delay_ms = -1};
    bool is_used_up = count(t->counts, &step.state, input, limits);

    step.state.status = is_used_up ? t->when_used_up : t->next;
    if (input->outcome == OUTCOME_AMBIGUOUS) {
        step.state.verify_attempts = 0; /* a new attempt, a new series of verifications */
    }
    if (step.state.status == STATUS_ERROR) {
        step.event = EVENT_ERROR;
        step.code = is_used_up ? code_by_counts[t->counts] : code_by_outcome(input->outcome);
    } else {
        step.event = t->event;
        step.delay_ms = delay_for(t, &step.state, input, limits);
    }
    *ret_step = step;
    return 0;
}

static const char *const status_names[] = {
#define STATUS(id, name) [STATUS_##id] = (name),
#include "common/core/lifecycle.def"
};
static const char *const outcome_names[] = {
#define OUTCOME(id, name) [OUTCOME_##id] = (name),
#include "common/core/lifecycle.def"
};
static const char *const code_names[] = {
    [CODE_NONE] = "none",
#define ERROR_CODE(id, name) [CODE_##id] = (name),
#include "common/core/lifecycle.def"
};

const char *entry_status_name(enum entry_status status)
{
    return (unsigned)status < STATUS_COUNT ? status_names[status] : "invalid";
}

const char *outcome_name(enum outcome outcome)
{
    return (unsigned)outcome < OUTCOME_COUNT ? outcome_names[outcome] : "invalid";
}

const char *error_code_name(enum error_code code)
{
    return (unsigned)code < CODE_COUNT ? code_names[code] : "invalid";
}

int entry_status_from_name(const char *name, uint64_t len, enum entry_status *ret)
{
    for (unsigned i = 0; i < STATUS_COUNT; i++) {
        if (strlen(status_names[i]) == len && memcmp(status_names[i], name, len) == 0) {
            *ret = (enum entry_status)i;
            return 0;
        }
    }
    return -EINVAL;
}
