/* One attempt or look-up of a delivery: the guards before it, the request, what its answer means.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/core/backoff.h"
#include "worker/answer.h"
#include "worker/delivery.h"
#include "worker/problem_body.h"
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

/* ---- the request ---- */

static void on_request_started(void *arg)
{
    struct delivery *delivery = arg;
    const struct entry *entry = delivery->entry;
    /* Due since its acceptance, or since the time that its last outcome set. */
    const int64_t due_ms =
        entry->next_attempt_at_ms > 0 ? entry->next_attempt_at_ms : entry->accepted_at_ms;
    const int64_t late_ms = store_now_ms(delivery) - due_ms;

    delivery->request_mono_ns = clock_mono_ns();
    if (delivery->step == STEP_REQUESTING) {
        metrics_observe_ns(delivery->worker->metrics, METRIC_dispatch_latency_seconds, 0,
                           late_ms * 1000000);
    }
}

static void describe(struct delivery *delivery, const struct transfer_result *result,
                     const struct problem_body *problem)
{
    struct verdict *verdict = &delivery->verdict;

    if (problem->code[0]) {
        snprintf(verdict->code, sizeof(verdict->code), "%s", problem->code);
    } else if (result->status > 0) {
        snprintf(verdict->code, sizeof(verdict->code), "http_%d", result->status);
    } else {
        snprintf(verdict->code, sizeof(verdict->code),
                 result->is_started ? "no_answer" : "not_reached");
    }
    if (result->status > 0) {
        snprintf(verdict->message, sizeof(verdict->message), "the target answered %d%s%s",
                 result->status, problem->detail[0] ? ": " : "", problem->detail);
    } else {
        snprintf(verdict->message, sizeof(verdict->message), "%.200s", result->failure);
    }
}

static void keep_conflict(struct delivery *delivery, const struct transfer_result *result,
                          const struct problem_body *problem)
{
    if (problem->current[0]) {
        delivery->verdict.conflict_current = strdup(problem->current);
    } else if (result->etag) {
        json_t *etag =
            json_string(result->etag); /* NULL if it is no UTF-8: then nothing is known */

        delivery->verdict.conflict_current = json_dumps(etag, JSON_ENCODE_ANY);
        json_decref(etag);
    }
}

static void on_answer(const struct transfer_result *result, void *arg)
{
    struct delivery *delivery = arg;
    struct worker *worker = delivery->worker;
    const struct kind *kind = delivery->kind;
    struct problem_body problem;

    http_request_text_done(&delivery->text);
    http_request_text_init(&delivery->text);
    if (result->is_refused_address) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, result->failure);
        return;
    }
    problem_body_read(result->content_type, result->body, &problem);
    const struct answer answer = {
        .is_started = result->is_started,
        .status = result->status,
        .is_complete = result->is_complete,
        .problem_code = span_of(problem.code),
    };
    const struct answer_reading reading = answer_read(&answer, kind->is_idempotent);
    struct verdict *verdict = &delivery->verdict;

    *verdict =
        (struct verdict){.outcome = reading.outcome, .via = VIA_ANSWER, .retry_after_ms = -1};
    if (reading.honours_retry_after && result->retry_after) {
        verdict->retry_after_ms =
            backoff_retry_after(result->retry_after, strlen(result->retry_after), clock_wall_ms(),
                                worker->settings->max_retry_after);
    }
    if (reading.outcome != OUTCOME_CONFIRMED) {
        describe(delivery, result, &problem);
    }
    if (reading.outcome == OUTCOME_CONFLICT) {
        keep_conflict(delivery, result, &problem);
    }
    if (reading.outcome == OUTCOME_AMBIGUOUS && !kind->verify.url) {
        verdict->outcome =
            kind->on_ambiguous == ON_AMBIGUOUS_RETRY ? OUTCOME_RETRY : OUTCOME_UNKNOWN;
    }
    if (delivery->request_mono_ns > 0) {
        metrics_observe_ns(worker->metrics, METRIC_delivery_duration_seconds,
                           settings_kind_index(worker->settings, kind),
                           clock_mono_ns() - delivery->request_mono_ns);
    }
    record_outcome(delivery);
}

static void send_now(struct delivery *delivery)
{
    struct worker *worker = delivery->worker;
    struct transfer_request request;
    const struct span workspace = {delivery->workspace, delivery->workspace_len};
    int err = exec_http_build(delivery->kind, &worker->target, workspace, delivery->entry,
                              delivery->sends, &delivery->text, &request);

    if (err == 0) {
        delivery->step = STEP_REQUESTING;
        err = transfer_start(worker->transfers, &request, on_request_started, on_answer, delivery);
    }
    if (err < 0) {
        char problem[sizeof(delivery->text.problem)];

        memcpy(problem, delivery->text.problem, sizeof(problem));
        http_request_text_done(&delivery->text);
        http_request_text_init(&delivery->text);
        if (err == -EINVAL) {
            record_failed(delivery, CODE_EXECUTOR_ERROR,
                          problem[0] ? problem : "the request cannot be built");
        } else {
            record_release(delivery, 1000); /* out of memory: nothing was sent */
        }
    }
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

    store_owns(delivery->worker->store, &ref, on_owner, delivery);
}

/* A slow process that lost its lock cannot hurt (contract §8): the request starts only while the
 * lock outlasts it and the store has heard of this generation lately; else the token is asked for
 * first. */
void attempt_request(struct delivery *delivery)
{
    const struct worker *worker = delivery->worker;
    const bool is_heard_of = worker->beat_acked_boot_ms > 0 &&
                             clock_boot_ms() - worker->beat_acked_boot_ms < BEAT_FRESH_MS;

    if (is_heard_of && lock_outlasts(delivery, delivery->kind->timeout_ms)) {
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

static bool is_in(const struct status_list *list, int status)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->codes[i] == status) {
            return true;
        }
    }
    return false;
}

/* Absence counts only when asked at least verify_settle after the connection ended or the entry was
 * taken over. */
static int64_t settle_left_ms(const struct delivery *delivery)
{
    const struct entry *entry = delivery->entry;
    int64_t ended = entry->last_end_at_ms;

    if (ended == 0) {
        /* A claim for sending has moved lastAttemptAt already: that is not the earlier attempt. */
        ended = delivery->status == STATUS_DELIVERING ? entry->first_claim_at_ms
                                                      : entry->last_attempt_at_ms;
    }

    /* The question was asked when the look-up was sent, not when its answer came. */
    const int64_t asked_ms =
        delivery->claim_store_ms + (delivery->request_mono_ns / 1000000 - delivery->claim_mono_ms);

    return ended + delivery->kind->verify_settle_ms - asked_ms;
}

static void on_absent(struct delivery *delivery)
{
    struct verdict *verdict = &delivery->verdict;
    const int64_t left = settle_left_ms(delivery);

    if (left > 0) {
        metrics_add(delivery->worker->metrics, METRIC_verifications_total, LABEL_VERDICT_TOO_EARLY,
                    1);
        if (delivery->status == STATUS_DELIVERING) {
            record_release(delivery, left);
            return;
        }
        verdict->outcome = OUTCOME_TOO_EARLY;
        verdict->settle_left_ms = left;
        record_outcome(delivery);
        return;
    }
    metrics_add(delivery->worker->metrics, METRIC_verifications_total, LABEL_VERDICT_ABSENT, 1);
    switch (delivery->status) {
    case STATUS_DELIVERING:
        delivery->is_resend_checked = true;
        attempt_request(delivery);
        return;
    case STATUS_PENDING:
        delivery->is_resend_checked = true;
        attempt_begin_send(delivery);
        return;
    case STATUS_VERIFYING:
    case STATUS_ERROR:
    case STATUS_PARKED:
    case STATUS_COUNT:
        break;
    }
    verdict->outcome = OUTCOME_ABSENT;
    snprintf(verdict->code, sizeof(verdict->code), "absent");
    snprintf(verdict->message, sizeof(verdict->message),
             "the target proved that it has not got it");
    record_outcome(delivery);
}

static void on_looked_up(const struct transfer_result *result, void *arg)
{
    struct delivery *delivery = arg;
    struct worker *worker = delivery->worker;
    const struct verify_lookup *lookup = &delivery->kind->verify;
    struct verdict *verdict = &delivery->verdict;

    http_request_text_done(&delivery->text);
    http_request_text_init(&delivery->text);
    *verdict = (struct verdict){.via = VIA_VERIFICATION, .retry_after_ms = -1};
    if (is_in(&lookup->delivered, result->status)) {
        metrics_add(worker->metrics, METRIC_verifications_total, LABEL_VERDICT_DELIVERED, 1);
        verdict->outcome = OUTCOME_CONFIRMED;
        record_outcome(delivery);
        return;
    }
    if (is_in(&lookup->absent, result->status)) {
        on_absent(delivery);
        return;
    }
    metrics_add(worker->metrics, METRIC_verifications_total, LABEL_VERDICT_INCONCLUSIVE, 1);
    /* DELIVERING: claimed for sending, but the look-up has to come first and tells nothing: as an
     * ambiguous attempt. */
    verdict->outcome =
        delivery->status == STATUS_DELIVERING ? OUTCOME_AMBIGUOUS : OUTCOME_INCONCLUSIVE;
    snprintf(verdict->code, sizeof(verdict->code), "inconclusive");
    if (result->status > 0) {
        snprintf(verdict->message, sizeof(verdict->message),
                 "the look-up answered %d, which proves nothing", result->status);
    } else {
        snprintf(verdict->message, sizeof(verdict->message), "the look-up failed: %.200s",
                 result->failure);
    }
    record_outcome(delivery);
}

void attempt_look_up(struct delivery *delivery)
{
    struct worker *worker = delivery->worker;
    struct transfer_request request;
    const struct span workspace = {delivery->workspace, delivery->workspace_len};

    delivery->step = STEP_LOOKING_UP;
    delivery->request_mono_ns = clock_mono_ns();
    int err = exec_http_build_lookup(delivery->kind, &worker->target, workspace, delivery->entry,
                                     worker->settings->verify_timeout, &delivery->text, &request);

    if (err == 0) {
        err = transfer_start(worker->transfers, &request, NULL, on_looked_up, delivery);
    }
    if (err == -EINVAL) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, delivery->text.problem);
    } else if (err < 0) {
        record_release(delivery, 1000);
    }
}
