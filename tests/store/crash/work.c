/* The steps of worker/delivery.c, attempt.c and record.c that lead to store calls. */
#include "tests/store/crash/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/lookup_step.h"
#include "worker/sweep_step.h"

enum next_step { NEXT_BASELINE, NEXT_BEGIN_SEND, NEXT_RECORD, NEXT_RELEASE, NEXT_NOTHING };

struct job {
    struct taken taken;
    enum next_step next;
    enum outcome outcome;
    enum sent_via via;
    bool is_late; /* other calls came since the claim */
};

struct shift {
    struct hand *hand;
    const struct work_plan *plan;
    bool has_asked, has_looked_up, has_given_back;
};

static const struct kind *kind_of(const struct shift *shift, const struct job *job)
{
    const struct journal_entry *entry = journal_find(shift->hand->journal, job->taken.id);
    const struct kind *kind = entry ? journal_kind(entry, shift->hand->settings) : NULL;

    if (!kind) {
        fprintf(stderr, "a worker was given %s, of no kind\n", job->taken.id);
        abort();
    }
    return kind;
}

static void record(struct job *job, enum outcome outcome, enum sent_via via)
{
    job->next = NEXT_RECORD;
    job->outcome = outcome;
    job->via = via;
}

/* ---- the request ---- */

static enum outcome outcome_of_lost(const struct kind *kind)
{
    if (kind->is_idempotent) {
        return OUTCOME_RETRY;
    }
    return kind_can_look_up(kind) ? OUTCOME_AMBIGUOUS : OUTCOME_UNKNOWN;
}

static void request(struct shift *shift, struct job *job)
{
    struct journal *journal = shift->hand->journal;
    const struct kind *kind = kind_of(shift, job);
    const char *id = job->taken.id;
    const enum target_answer answer = shift->has_asked ? TARGET_CONFIRMS : shift->plan->first;

    shift->has_asked = true;
    if (answer == TARGET_UNREACHED) {
        record(job, OUTCOME_TRANSIENT, VIA_ANSWER);
        return;
    }
    if (shift->hand->look) {
        shift->hand->look(shift->hand);
    }
    journal_request(journal, shift->hand->settings, &job->taken, job->is_late);
    switch (answer) {
    case TARGET_CONFIRMS:
        journal_stored(journal, id);
        record(job, OUTCOME_CONFIRMED, VIA_ANSWER);
        break;
    case TARGET_ANSWER_LOST:
        journal_stored(journal, id);
        record(job, outcome_of_lost(kind), VIA_ANSWER);
        break;
    case TARGET_REQUEST_LOST:
        record(job, outcome_of_lost(kind), VIA_ANSWER);
        break;
    case TARGET_REFUSES:
        journal_refused(journal, id, shift->hand->settings);
        record(job, kind->is_idempotent ? OUTCOME_RETRY : OUTCOME_REJECTED, VIA_ANSWER);
        break;
    case TARGET_FAILS_IT:
        journal_refused(journal, id, shift->hand->settings);
        record(job, OUTCOME_FAILED, VIA_ANSWER);
        break;
    case TARGET_CONFLICTS:
        journal_refused(journal, id, shift->hand->settings);
        record(job, OUTCOME_CONFLICT, VIA_ANSWER);
        break;
    case TARGET_OWNS_IT:
        journal_stored(journal, id);
        record(job, OUTCOME_PRIOR_PENDING, VIA_ANSWER);
        break;
    case TARGET_UNREACHED:
        break;
    }
}

static void go_for_request(struct shift *shift, struct job *job)
{
    if (shift->plan->notes_baseline) {
        job->next = NEXT_BASELINE;
    } else {
        request(shift, job);
    }
}

/* ---- look-ups ---- */

static enum lookup_verdict ask(struct shift *shift, const struct job *job)
{
    const bool is_blind = shift->plan->is_blind && !shift->has_looked_up;

    shift->has_looked_up = true;
    if (is_blind) {
        return LOOKUP_INCONCLUSIVE;
    }
    return journal_look_up(shift->hand->journal, job->taken.id) ? LOOKUP_DELIVERED : LOOKUP_ABSENT;
}

static void look_up(struct shift *shift, struct job *job, enum lookup_reason reason)
{
    const struct lookup_step step = lookup_step(reason, ask(shift, job), true);

    switch (step.then) {
    case LOOKUP_THEN_RECORD:
        record(job, step.outcome, VIA_VERIFICATION);
        break;
    case LOOKUP_THEN_BEGIN_SEND:
        job->next = NEXT_BEGIN_SEND;
        break;
    case LOOKUP_THEN_REQUEST:
        go_for_request(shift, job);
        break;
    }
}

static void begin_verify(struct shift *shift, struct job *job)
{
    const struct kind *kind = kind_of(shift, job);
    const bool was_refused = job->taken.status == STATUS_PENDING;

    if (!kind->is_idempotent && kind_can_look_up(kind)) {
        look_up(shift, job, was_refused ? LOOKUP_FOR_RESEND : LOOKUP_FOR_VERIFYING);
    } else if (kind->is_idempotent || was_refused) {
        job->next = NEXT_BEGIN_SEND;
    } else {
        record(job, OUTCOME_UNKNOWN, VIA_ANSWER);
    }
}

/* What follows the claim at once, without another call. */
static void begin(struct shift *shift, struct job *job)
{
    const struct kind *kind = kind_of(shift, job);

    job->is_late = false;
    if (shift->plan->gives_back && !shift->has_given_back) {
        job->next = NEXT_RELEASE;
        return;
    }
    switch (job->taken.mode) {
    case CLAIM_SEND:
        if (!kind->is_idempotent && kind_can_look_up(kind) && job->taken.sends > 1) {
            look_up(shift, job, LOOKUP_FOR_CLAIMED_SEND);
        } else {
            go_for_request(shift, job);
        }
        break;
    case CLAIM_VERIFY:
        begin_verify(shift, job);
        break;
    case CLAIM_POLL:
        look_up(shift, job, LOOKUP_FOR_POLL);
        break;
    }
}

/* ---- calls ---- */

static bool note_baseline(struct shift *shift, struct job *job)
{
    bool is_noted = false;

    if (!hand_note_baseline(shift->hand, &job->taken, &is_noted)) {
        return false;
    }
    job->is_late = true;
    job->next = NEXT_RELEASE;
    if (is_noted) {
        request(shift, job);
    }
    return true;
}

static bool begin_send(struct shift *shift, struct job *job)
{
    struct begin_send_answer begun = {0};

    if (!hand_begin_send(shift->hand, &job->taken, &begun)) {
        return false;
    }
    job->next = NEXT_RELEASE;
    if (begun.applied) {
        job->taken.status = STATUS_DELIVERING;
        job->taken.sends = begun.sends;
        go_for_request(shift, job);
    }
    return true;
}

static const char *sweep_of(const struct shift *shift, enum error_code code)
{
    if (shift->plan->is_ledger && (code == CODE_ATTEMPTS_EXHAUSTED || code == CODE_UNREACHABLE ||
                                   code == CODE_UNVERIFIABLE)) {
        return "ledger";
    }
    return code == CODE_UNVERIFIABLE ? "verify" : "";
}

static void fill_settle(const struct shift *shift, const struct job *job,
                        struct settle_request *ret)
{
    const struct taken *taken = &job->taken;
    const struct lifecycle_state state = {
        .status = taken->status,
        .attempts = taken->attempts,
        .verify_attempts = taken->verify_attempts,
        .transient_fails = taken->transient_fails,
    };
    const struct lifecycle_input input = {.outcome = job->outcome, .retry_after_ms = -1};

    *ret = (struct settle_request){.want_next = !shift->plan->is_single};
    if (lifecycle_apply(&state, &input, &sync_limits, &ret->step) < 0) {
        fprintf(stderr, "no transition for %s of %s\n", outcome_name(job->outcome), taken->id);
        abort();
    }
    const enum error_code code = ret->step.code;

    ret->error_code =
        span_of(code == CODE_NONE || code == CODE_FROM_TARGET ? outcome_name(job->outcome)
                                                              : error_code_name(code));
    ret->error_message = span_of("as the test says");
    ret->conflict_current = span_of(job->outcome == OUTCOME_CONFLICT ? "{\"version\":\"v2\"}" : "");
    ret->sweep = span_of(sweep_of(shift, code));
    ret->is_unsent = job->outcome == OUTCOME_TRANSIENT && taken->status == STATUS_DELIVERING &&
                     taken->mode != CLAIM_POLL;
}

static bool write_down(struct shift *shift, struct job *job)
{
    struct outcome_copy done = {0};
    struct settle_request settle;
    char result[64];
    bool lives;

    if (job->outcome == OUTCOME_CONFIRMED) {
        snprintf(result, sizeof(result), "{\"a\":\"r-%.20s\"}", job->taken.id);
        lives = hand_finish(shift->hand, &job->taken, job->via,
                            job->via == VIA_ANSWER ? result : "", !shift->plan->is_single, &done);
    } else {
        fill_settle(shift, job, &settle);
        lives = hand_settle(shift->hand, &job->taken, &settle, &done);
    }
    job->next = NEXT_NOTHING;
    if (lives && done.has_next) {
        job->taken = done.next;
        begin(shift, job);
    }
    return lives;
}

static bool carry_on(struct shift *shift, struct job *job)
{
    for (;;) {
        switch (job->next) {
        case NEXT_BASELINE:
            if (!note_baseline(shift, job)) {
                return false;
            }
            break;
        case NEXT_BEGIN_SEND:
            if (!begin_send(shift, job)) {
                return false;
            }
            break;
        case NEXT_RECORD:
            if (!write_down(shift, job)) {
                return false;
            }
            break;
        case NEXT_RELEASE:
            return hand_release(shift->hand, &job->taken);
        case NEXT_NOTHING:
            return true;
        }
    }
}

bool work(struct hand *hand, const struct work_plan *plan, unsigned *ret_claimed)
{
    struct shift shift = {.hand = hand, .plan = plan};
    struct taken_list list = {.count = 1};
    struct job jobs[2];
    unsigned claimed = 0;

    for (unsigned claim = 0; claim < plan->claims && list.count > 0; claim++) {
        if (!hand_claim(hand, &list)) {
            return false;
        }
        for (size_t i = 0; i < list.count; i++) {
            jobs[i].taken = list.items[i];
            begin(&shift, &jobs[i]);
        }
        shift.has_given_back |= list.count > 0;
        for (size_t i = 0; i < list.count; i++) {
            if (!carry_on(&shift, &jobs[i])) {
                return false;
            }
        }
        claimed += (unsigned)list.count;
    }
    if (ret_claimed) {
        *ret_claimed = claimed;
    }
    return true;
}

/* ---- sweeps ---- */

static enum entry_status status_of(enum sweep_action action)
{
    switch (action) {
    case SWEEP_COMPLETE:
        return STATUS_ENDED;
    case SWEEP_TO_PENDING:
        return STATUS_PENDING;
    case SWEEP_TO_VERIFYING:
        return STATUS_VERIFYING;
    case SWEEP_STAY:
    case SWEEP_NOTHING_KNOWN:
        break;
    }
    return STATUS_ERROR;
}

bool work_sweep(struct hand *hand)
{
    struct swept swept[4];
    size_t count = 0;

    if (!hand_sweep_take(hand, swept, 4, &count)) {
        return !hand->is_dead;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sweep_subject subject = {
            .is_ledger = false,
            .is_unverifiable = strcmp(swept[i].code, "unverifiable") == 0,
            .attempts = swept[i].attempts,
            .max_attempts = sync_limits.max_attempts,
        };
        const struct sweep_step step =
            sweep_step(&subject, journal_look_up(hand->journal, swept[i].id) ? LOOKUP_DELIVERED
                                                                             : LOOKUP_ABSENT);

        if ((status_of(step.action) != STATUS_ERROR || step.attempts != swept[i].attempts) &&
            !hand_sweep_settle(hand, &swept[i], status_of(step.action), step.attempts)) {
            return false;
        }
    }
    return true;
}
