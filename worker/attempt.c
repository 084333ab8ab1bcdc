/* The guards before an attempt, the look-up before a re-send, and what follows from its verdict.
 * What is sent and asked is the executor's (executor.h). */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/delivery.h"
#include "worker/executor.h"
#include "worker/lookup_step.h"
#include "worker/transfer.h"
#include "worker/worker.h"

#define TOO_LATE_MS   100
#define BEAT_FRESH_MS 5000 /* contract §8: the counter was acknowledged less than this ago */

/* The store's clock now, as far as we can tell: its time at the claim and what passed since. */
static int64_t store_now_ms(const struct delivery *delivery)
{
    return delivery->claim_store_ms + (clock_mono_ms() - delivery->claim_mono_ms);
}

static bool lock_outlasts(const struct delivery *delivery, int64_t timeout_ms)
{
    return clock_boot_ms() + timeout_ms < delivery->lock_boot_ms + delivery->worker->lock_ttl_ms;
}

/* The store acknowledged this generation's counter, or this very lock, lately. */
static bool is_heard_of(const struct delivery *delivery)
{
    const int64_t beat_ms = delivery->worker->beat_acked_boot_ms;
    const int64_t heard_ms = beat_ms > delivery->owned_boot_ms ? beat_ms : delivery->owned_boot_ms;

    return heard_ms > 0 && clock_boot_ms() - heard_ms < BEAT_FRESH_MS;
}

/* ---- the request ---- */

bool attempt_may_start(void *arg)
{
    const struct delivery *delivery = arg;
    /* The request's time limit runs since then, on a clock that stands still while the machine
     * sleeps. */
    const int64_t spent_ms = clock_mono_ms() - delivery->send_mono_ms;

    return is_heard_of(delivery) && lock_outlasts(delivery, delivery->kind->timeout_ms - spent_ms);
}

bool attempt_was_too_late(struct delivery *delivery, const struct transfer_result *result)
{
    struct verdict *verdict = &delivery->verdict;

    if (!result->is_too_late) {
        return false;
    }
    *verdict = (struct verdict){
        .outcome = OUTCOME_TRANSIENT, .via = VIA_ANSWER, .is_unsent = true, .retry_after_ms = -1};
    snprintf(verdict->code, sizeof(verdict->code), "not_reached");
    snprintf(verdict->message, sizeof(verdict->message), "%.200s", result->failure);
    record_outcome(delivery);
    return true;
}

void attempt_started(void *arg)
{
    struct delivery *delivery = arg;
    const struct entry *entry = delivery->entry;
    /* Due since its acceptance, or since the time that its last outcome set. */
    const int64_t due_ms =
        entry->next_attempt_at_ms > 0 ? entry->next_attempt_at_ms : entry->accepted_at_ms;
    const int64_t late_ms = store_now_ms(delivery) - due_ms;

    delivery->request_mono_ns = clock_mono_ns();
    metrics_observe_ns(delivery->worker->metrics, METRIC_dispatch_latency_seconds, 0,
                       late_ms * 1000000);
}

void attempt_answered(struct delivery *delivery)
{
    if (delivery->request_mono_ns > 0) {
        metrics_observe_ns(delivery->worker->metrics, METRIC_delivery_duration_seconds,
                           delivery->kind->place, clock_mono_ns() - delivery->request_mono_ns);
    }
}

static void send_now(struct delivery *delivery)
{
    delivery->step = STEP_REQUESTING;
    delivery->send_mono_ms = clock_mono_ms();
    delivery->executor->send(delivery);
}

static void check_owner(uv_timer_t *timer);

static void on_owner(enum store_result result, bool yes, void *arg)
{
    struct delivery *delivery = arg;

    if (result != STORE_OK) {
        if (!record_repeat_later(delivery, result, check_owner)) {
            delivery_end(delivery);
        }
        return;
    }
    if (!yes) {
        log_warn("the lock was lost before the request started", "entry", delivery->id);
        delivery_end(delivery);
        return;
    }
    delivery->owned_boot_ms = delivery->owner_asked_boot_ms;
    if (!lock_outlasts(delivery, delivery->kind->timeout_ms)) {
        record_release(delivery, TOO_LATE_MS); /* a delay, so that a tight lock_ttl spins nothing */
        return;
    }
    send_now(delivery);
}

static void check_owner(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    const struct claim_ref ref = delivery_ref(delivery);

    delivery->owner_asked_boot_ms = clock_boot_ms();
    store_owns(delivery->worker->store, &ref, on_owner, delivery);
}

/* A slow process that lost its lock cannot hurt (contract §8): the request starts only while the
 * lock outlasts it, the store has heard of this generation lately and the entry has not waited
 * here; else the token is asked for first. */
void attempt_request(struct delivery *delivery)
{
    if (!delivery->must_ask_owner && is_heard_of(delivery) &&
        lock_outlasts(delivery, delivery->kind->timeout_ms)) {
        send_now(delivery);
        return;
    }
    delivery->step = STEP_CHECKING;
    check_owner(&delivery->repeat);
}

/* ---- begin_send ---- */

static void begin_send(uv_timer_t *timer);

static void on_begun(enum store_result result, const struct begin_send_answer *answer, void *arg)
{
    struct delivery *delivery = arg;

    if (result != STORE_OK) {
        if (!record_repeat_later(delivery, result, begin_send)) {
            delivery_end(delivery);
        }
        return;
    }
    if (!answer->applied) {
        record_release(delivery, 0);
        return;
    }
    delivery->status = STATUS_DELIVERING;
    delivery->sends = answer->sends;
    delivery->claim_store_ms = answer->now_ms;
    delivery->claim_mono_ms = clock_mono_ms();
    attempt_request(delivery);
}

static void begin_send(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    const struct claim_ref ref = delivery_ref(delivery);

    /* The script renews the lock: it lives from before this call. */
    delivery->lock_boot_ms = clock_boot_ms();
    store_begin_send(delivery->worker->store, &ref, on_begun, delivery);
}

void attempt_begin_send(struct delivery *delivery)
{
    delivery->step = STEP_BEGINNING;
    begin_send(&delivery->repeat);
}

/* ---- the look-up ---- */

static enum lookup_reason reason_of(const struct delivery *delivery)
{
    if (delivery->mode == CLAIM_POLL) {
        return LOOKUP_FOR_POLL;
    }
    switch (delivery->status) {
    case STATUS_DELIVERING:
        return LOOKUP_FOR_CLAIMED_SEND;
    case STATUS_PENDING:
        return LOOKUP_FOR_RESEND;
    case STATUS_VERIFYING:
    case STATUS_ERROR:
    case STATUS_PARKED:
    case STATUS_COUNT:
        break;
    }
    return LOOKUP_FOR_VERIFYING;
}

/* Absence counts only when asked at least verify_settle after the connection ended or the entry was
 * taken over. */
static int64_t settle_left_ms(const struct delivery *delivery, int64_t asked_mono_ms)
{
    const struct entry *entry = delivery->entry;
    int64_t ended = entry->last_end_at_ms;

    if (ended == 0) {
        /* A claim for sending has moved lastAttemptAt already: that is not the earlier attempt. */
        ended = delivery->status == STATUS_DELIVERING ? entry->first_claim_at_ms
                                                      : entry->last_attempt_at_ms;
    }

    /* The question was asked when the look-up was sent, not when its answer came. */
    const int64_t asked_ms = delivery->claim_store_ms + (asked_mono_ms - delivery->claim_mono_ms);

    return ended + delivery->kind->verify_settle_ms - asked_ms;
}

static void ask_again_later(struct delivery *delivery, int64_t left_ms)
{
    if (delivery->status == STATUS_DELIVERING) {
        record_release(delivery, left_ms);
        return;
    }
    delivery->verdict.outcome = OUTCOME_TOO_EARLY;
    delivery->verdict.settle_left_ms = left_ms;
    record_outcome(delivery);
}

static enum label_verdict verdict_label(enum lookup_verdict verdict, bool is_too_early)
{
    if (verdict == LOOKUP_DELIVERED) {
        return LABEL_VERDICT_DELIVERED;
    }
    if (verdict == LOOKUP_ABSENT || verdict == LOOKUP_REFUSED) {
        return is_too_early ? LABEL_VERDICT_TOO_EARLY : LABEL_VERDICT_ABSENT;
    }
    return LABEL_VERDICT_INCONCLUSIVE;
}

static void on_looked_up(const struct lookup_result *result, void *arg)
{
    struct delivery *delivery = arg;
    const struct lookup_step step =
        lookup_step(reason_of(delivery), result->verdict, result->is_reached);
    const int64_t left_ms = step.must_settle ? settle_left_ms(delivery, result->asked_mono_ms) : 0;

    metrics_add(delivery->worker->metrics, METRIC_verifications_total,
                verdict_label(result->verdict, left_ms > 0), 1);
    delivery->verdict =
        (struct verdict){.outcome = step.outcome, .via = result->via, .retry_after_ms = -1};
    snprintf(delivery->verdict.code, sizeof(delivery->verdict.code), "%s", result->code);
    snprintf(delivery->verdict.message, sizeof(delivery->verdict.message), "%s", result->message);
    if (left_ms > 0) {
        ask_again_later(delivery, left_ms);
        return;
    }
    switch (step.then) {
    case LOOKUP_THEN_REQUEST:
        attempt_request(delivery);
        return;
    case LOOKUP_THEN_BEGIN_SEND:
        attempt_begin_send(delivery);
        return;
    case LOOKUP_THEN_RECORD:
        break;
    }
    if (result->verdict == LOOKUP_BROKEN) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, result->message);
        return;
    }
    record_outcome(delivery);
}

void attempt_look_up(struct delivery *delivery)
{
    delivery->step = STEP_LOOKING_UP;
    delivery->subject = delivery_subject(delivery);
    if (delivery->executor->look_up(delivery->worker, &delivery->subject, on_looked_up, delivery) <
        0) {
        record_release(delivery, 1000); /* out of memory: nothing was asked */
    }
}
