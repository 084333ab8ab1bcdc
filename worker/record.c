/* Outcomes on their way to the store. Nothing about a finished request is forgotten: the call is
 * repeated, with a growing delay, until the store has answered; the scripts are idempotent, so a
 * repeat whose first run happened changes nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/core/keys.h"
#include "worker/claim.h"
#include "worker/delivery.h"
#include "worker/executor.h"
#include "worker/held.h"
#include "worker/worker.h"

#define REPEAT_MIN_MS      20
#define REPEAT_MAX_MS      1000
#define LOCK_GONE_AFTER_MS 5000 /* beyond its time: clocks differ a little */

static uint32_t random_u32(void)
{
    uint32_t value = 0;

    (void)!getrandom(&value, sizeof(value), GRND_NONBLOCK); /* only jitter: a zero does no harm */
    return value;
}

static struct lifecycle_limits limits_of(const struct delivery *delivery)
{
    const struct settings *settings = delivery->worker->settings;
    const struct kind *kind = delivery->kind ? delivery->kind : &settings->kinds[0];

    return (struct lifecycle_limits){
        .max_attempts = kind->max_attempts,
        .max_verify_attempts = kind->max_verify_attempts,
        .max_transient_fails = kind->max_transient_failures,
        .retry_for_ms = kind->retry_for_ms,
        .retry_backoff_ms = kind->retry_backoff_ms,
        .max_backoff_ms = kind->max_backoff_ms,
        .full_jitter = settings->jitter == JITTER_FULL,
        .verify_delay_ms = kind->verify_delay_ms,
        .verify_backoff_ms = settings->verify_backoff,
        .max_verify_backoff_ms = settings->max_verify_backoff,
        .repoll_after_ms = settings->repoll_after,
    };
}

bool record_repeat_later(struct delivery *delivery, enum store_result result, uv_timer_cb again)
{
    const bool is_outage = result != STORE_ERROR && result != STORE_PROTOCOL;

    /* An error that is no outage (a corrupt key) may never go away. Let go of only once the lock is
     * gone, too: a session that is locked and that we do not know would be given back as if nothing
     * had been sent. */
    if (!is_outage && clock_boot_ms() > delivery->lock_boot_ms + delivery->worker->lock_ttl_ms +
                                            LOCK_GONE_AFTER_MS) {
        log_error("the store refuses to record what became of an entry; it is left to recovery",
                  "entry", delivery->id, "result", store_result_name(result));
        return false;
    }
    delivery->repeat_ms = delivery->repeat_ms == 0 ? REPEAT_MIN_MS : delivery->repeat_ms * 2;
    if (delivery->repeat_ms > REPEAT_MAX_MS) {
        delivery->repeat_ms = REPEAT_MAX_MS;
    }
    uv_timer_start(&delivery->repeat, again, (uint64_t)delivery->repeat_ms, 0);
    return true;
}

/* ---- outcomes ---- */

static void send_outcome(uv_timer_t *timer);

static void on_recorded(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    struct delivery *delivery = arg;
    struct worker *worker = delivery->worker;

    if (result != STORE_OK) {
        if (!record_repeat_later(delivery, result, send_outcome)) {
            delivery_end(delivery);
        }
        return;
    }
    if (!answer->applied) {
        log_debug("an outcome changed nothing: the entry had moved on", "entry", delivery->id,
                  "outcome", outcome_name(delivery->verdict.outcome));
    }
    free(delivery->verdict.conflict_current);
    delivery->verdict.conflict_current = NULL;
    free(delivery->verdict.result);
    delivery->verdict.result = NULL;
    if (answer->next) {
        /* Under the same lock, renewed by the call whose answer this is. */
        delivery_go_on(delivery, answer->next, delivery->asked_boot_ms);
        return;
    }
    const uint32_t partition = partition_of(delivery->workspace, delivery->workspace_len);
    const int64_t due_ms = answer->next_due_ms;

    delivery_end(delivery);
    if (due_ms >= 0 && !worker->is_draining) {
        scheduler_mark_later(worker->scheduler, partition, due_ms);
    }
}

static int64_t since_first_claim_ms(const struct delivery *delivery)
{
    const int64_t first = delivery->entry->first_claim_at_ms;

    return first > 0
               ? delivery->claim_store_ms + (clock_mono_ms() - delivery->claim_mono_ms) - first
               : 0;
}

/* Which sweep may settle an entry that became `error` with this code (contract §3, Sweeps). */
static struct span sweep_of(const struct delivery *delivery, enum error_code code)
{
    const bool is_ledger = delivery->executor && delivery->executor->owns_attempts;

    if (is_ledger && (code == CODE_ATTEMPTS_EXHAUSTED || code == CODE_UNREACHABLE ||
                      code == CODE_UNVERIFIABLE)) {
        return span_of("ledger");
    }
    return span_of(code == CODE_UNVERIFIABLE ? "verify" : "");
}

/* False: the table knows no such transition, our own mistake. */
static bool fill_settle(const struct delivery *delivery, struct settle_request *ret)
{
    const struct verdict *verdict = &delivery->verdict;
    const struct lifecycle_state state = {
        .status = delivery->status,
        .attempts = delivery->entry->attempts,
        .verify_attempts = delivery->entry->verify_attempts,
        .transient_fails = delivery->entry->transient_fails,
    };
    const struct lifecycle_input input = {
        .outcome = verdict->outcome,
        .retry_after_ms = verdict->retry_after_ms,
        .since_first_claim_ms = since_first_claim_ms(delivery),
        .settle_left_ms = verdict->settle_left_ms,
        .random = random_u32(),
    };
    const struct lifecycle_limits limits = limits_of(delivery);

    *ret = (struct settle_request){.ref = delivery_ref(delivery)};
    if (lifecycle_apply(&state, &input, &limits, &ret->step) < 0) {
        return false;
    }
    const enum error_code code = ret->step.code;

    ret->error_code = code == CODE_NONE || code == CODE_FROM_TARGET
                          ? span_of(verdict->code)
                          : span_of(error_code_name(code));
    ret->error_message = span_of(verdict->message);
    ret->sweep = sweep_of(delivery, code);
    ret->is_unsent = (verdict->is_unsent || verdict->outcome == OUTCOME_TRANSIENT) &&
                     delivery->status == STATUS_DELIVERING && delivery->mode != CLAIM_POLL;
    ret->conflict_current = span_of(verdict->conflict_current);
    return true;
}

/* ---- the guard ---- */

static bool must_ask_guard(const struct delivery *delivery)
{
    return !delivery->is_guarded && delivery->executor && delivery->executor->guard &&
           delivery->is_target_readable && delivery->sends > 0;
}

static void on_guarded(const struct lookup_result *result, void *arg)
{
    struct delivery *delivery = arg;

    if (result->verdict == LOOKUP_DELIVERED || result->verdict == LOOKUP_PRIOR_PENDING) {
        free(delivery->verdict.conflict_current);
        delivery->verdict =
            (struct verdict){.outcome = result->verdict == LOOKUP_DELIVERED ? OUTCOME_CONFIRMED
                                                                            : OUTCOME_PRIOR_PENDING,
                             .via = result->via,
                             .retry_after_ms = -1};
    }
    delivery->step = STEP_RECORDING;
    send_outcome(&delivery->repeat);
}

static void ask_guard(struct delivery *delivery, uint32_t attempts)
{
    delivery->is_guarded = true;
    delivery->step = STEP_GUARDING;
    delivery->subject = delivery_subject(delivery);
    delivery->subject.attempts = attempts;
    if (delivery->executor->guard(delivery->worker, &delivery->subject, on_guarded, delivery) < 0) {
        delivery->step = STEP_RECORDING; /* out of memory: nobody was asked */
        send_outcome(&delivery->repeat);
    }
}

static void send_outcome(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    struct worker *worker = delivery->worker;
    const struct span workspace = {delivery->workspace, delivery->workspace_len};
    const struct claim_ref ref = delivery_ref(delivery);
    const bool want_next = scheduler_may_chain(worker->scheduler, workspace);
    struct settle_request request;

    delivery->asked_boot_ms = clock_boot_ms();
    if (delivery->verdict.outcome == OUTCOME_CONFIRMED) {
        log_debug("entry settled", "workspace", delivery->workspace, "session", delivery->session,
                  "entry", delivery->id, "status", "sent");
        store_finish(worker->store, &ref, delivery->verdict.via, span_of(delivery->verdict.result),
                     want_next, on_recorded, delivery);
        return;
    }
    if (!fill_settle(delivery, &request)) {
        log_error("no transition for an outcome", "entry", delivery->id, "status",
                  entry_status_name(delivery->status), "outcome",
                  outcome_name(delivery->verdict.outcome));
        abort(); /* our own mistake; going on would give a sent entry back as unsent. Recovery takes
                    over */
    }
    if (request.step.state.status == STATUS_ERROR && must_ask_guard(delivery)) {
        ask_guard(delivery, request.step.state.attempts);
        return;
    }
    log_debug("entry settled", "workspace", delivery->workspace, "session", delivery->session,
              "entry", delivery->id, "status", entry_status_name(request.step.state.status));
    request.want_next = want_next;
    store_settle(worker->store, &request, on_recorded, delivery);
}

static bool is_of_an_attempt(const struct delivery *delivery)
{
    return delivery->step == STEP_REQUESTING;
}

void record_outcome(struct delivery *delivery)
{
    struct worker *worker = delivery->worker;

    if (is_of_an_attempt(delivery)) {
        const size_t kind = delivery->kind ? delivery->kind->place : LABEL_KIND_OTHER;

        metrics_add_delivery(worker->metrics, kind, delivery->verdict.outcome, 1);
    }
    log_debug("entry outcome", "workspace", delivery->workspace, "session", delivery->session,
              "entry", delivery->id, "was", entry_status_name(delivery->status), "outcome",
              outcome_name(delivery->verdict.outcome), "code", delivery->verdict.code, "attempt",
              LOG_I64(delivery->sends));
    delivery->step = STEP_RECORDING;
    delivery->repeat_ms = 0;
    send_outcome(&delivery->repeat);
}

void record_failed(struct delivery *delivery, enum error_code code, const char *message)
{
    delivery->verdict = (struct verdict){.outcome = OUTCOME_FAILED, .retry_after_ms = -1};
    snprintf(delivery->verdict.code, sizeof(delivery->verdict.code), "%s", error_code_name(code));
    snprintf(delivery->verdict.message, sizeof(delivery->verdict.message), "%s", message);
    delivery->step = STEP_REQUESTING; /* counted as an attempt's outcome: a failure that nobody sees
                                         in a metric is lost */
    record_outcome(delivery);
}

/* ---- giving back ---- */

static void send_release(uv_timer_t *timer);

static void on_released(enum store_result result, bool yes, void *arg)
{
    struct delivery *delivery = arg;
    struct worker *worker = delivery->worker;
    const uint32_t partition = partition_of(delivery->workspace, delivery->workspace_len);
    const int64_t delay_ms = delivery->release_delay_ms;

    (void)yes;
    if (result != STORE_OK && record_repeat_later(delivery, result, send_release)) {
        return;
    }
    delivery_end(delivery);
    if (!worker->is_draining) {
        scheduler_mark_later(worker->scheduler, partition, delay_ms);
    }
}

static void send_release(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    const struct claim_ref ref = delivery_ref(delivery);

    if (delivery->rests) {
        store_hold(delivery->worker->store, &ref, delivery->release_delay_ms, delivery->rest_reason,
                   on_released, delivery);
        return;
    }
    store_release(delivery->worker->store, &ref, delivery->release_delay_ms, on_released, delivery);
}

void record_release(struct delivery *delivery, int64_t delay_ms)
{
    delivery->step = STEP_RELEASING;
    delivery->release_delay_ms = delay_ms;
    delivery->repeat_ms = 0;
    send_release(&delivery->repeat);
}

void record_rest(struct delivery *delivery, int64_t delay_ms, struct span reason)
{
    delivery->rests = true;
    delivery->rest_reason = reason;
    record_release(delivery, delay_ms);
}
