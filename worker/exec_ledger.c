/* The executor `ledger`: Deliver, then the row is asked for until it is decided or the window has
 * passed. Contract §4 `ledger`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/core/backoff.h"
#include "worker/delivery.h"
#include "worker/executor.h"
#include "worker/ledger_answer.h"
#include "worker/ledger_lookup.h"
#include "worker/ledger_request.h"
#include "worker/problem_body.h"
#include "worker/transfer.h"
#include "worker/worker.h"

/* delivery->work: the wait for a decision. */
struct wait {
    int64_t next_mono_ms;  /* when the row is asked for again */
    int64_t until_mono_ms; /* the window's end */
    enum ledger_row seen;  /* what was read last; UNREAD: nothing yet */
};

static struct ledger_address address_of(const struct delivery *delivery)
{
    return (struct ledger_address){&delivery->target, delivery->worker->settings->ledger_path};
}

static uint64_t row_of(const struct delivery *delivery)
{
    return ledger_last_row(delivery->entry, delivery->entry->attempts) + 1;
}

static void drop_text(struct delivery *delivery)
{
    http_request_text_done(&delivery->text);
    http_request_text_init(&delivery->text);
}

static void record(struct delivery *delivery, enum outcome outcome, enum sent_via via,
                   const char *code, const char *message)
{
    struct verdict *verdict = &delivery->verdict;

    *verdict = (struct verdict){.outcome = outcome, .via = via, .retry_after_ms = -1};
    snprintf(verdict->code, sizeof(verdict->code), "%s", code);
    snprintf(verdict->message, sizeof(verdict->message), "%.200s", message);
    record_outcome(delivery);
}

/* Whether the row says how the attempt went: then that is recorded. */
static bool is_decided(struct delivery *delivery, enum ledger_row row, enum sent_via via)
{
    switch (row) {
    case LEDGER_ROW_COMPLETE:
        record(delivery, OUTCOME_CONFIRMED, via, "", "");
        return true;
    case LEDGER_ROW_FAILED:
        record(delivery, OUTCOME_REJECTED, via, "ledger_failed",
               "the ledger says that the attempt has failed");
        return true;
    case LEDGER_ROW_LEDGERED:
    case LEDGER_ROW_ABSENT:
    case LEDGER_ROW_UNKNOWN:
    case LEDGER_ROW_UNREAD:
    case LEDGER_ROW_COUNT:
        break;
    }
    return false;
}

/* ---- waiting for the decision ---- */

static void ask(uv_timer_t *timer);

static void give_up_waiting(struct delivery *delivery)
{
    const struct wait *wait = delivery->work;

    if (wait->seen == LEDGER_ROW_LEDGERED) {
        record(delivery, OUTCOME_PRIOR_PENDING, VIA_LEDGER, "", "");
    } else {
        record(delivery, OUTCOME_AMBIGUOUS, VIA_LEDGER, "undecided",
               "the target took it, and its ledger does not say what became of it");
    }
}

static void ask_later(struct delivery *delivery)
{
    struct wait *wait = delivery->work;
    const int64_t now = clock_mono_ms();

    if (now >= wait->until_mono_ms) {
        give_up_waiting(delivery);
        return;
    }
    wait->next_mono_ms += delivery->worker->settings->ledger_poll_interval;
    if (wait->next_mono_ms < now) {
        wait->next_mono_ms = now; /* a slow answer is not made up for */
    }
    uv_update_time(delivery->worker->loop);
    uv_timer_start(&delivery->repeat, ask, (uint64_t)(wait->next_mono_ms - now), 0);
}

static void on_row(const struct transfer_result *result, void *arg)
{
    struct delivery *delivery = arg;
    struct wait *wait = delivery->work;
    const enum ledger_row row = ledger_answer_read(result->status, result->body);

    drop_text(delivery);
    if (is_decided(delivery, row, VIA_LEDGER)) {
        return;
    }
    if (row != LEDGER_ROW_UNREAD) {
        wait->seen = row;
    }
    ask_later(delivery);
}

static void ask(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    const struct settings *settings = delivery->worker->settings;
    const struct wait *wait = delivery->work;
    const struct ledger_address address = address_of(delivery);
    const int64_t left_ms = wait->until_mono_ms - clock_mono_ms();
    struct transfer_request request;

    if (left_ms <= 0) {
        give_up_waiting(delivery);
        return;
    }
    int err = ledger_request_status(
        &address, delivery->entry, row_of(delivery),
        left_ms < settings->ledger_lookup_timeout ? left_ms : settings->ledger_lookup_timeout,
        &delivery->text, &request);

    if (err == 0) {
        err = transfer_start(delivery->worker->transfers, &request, NULL, on_row, delivery);
    }
    if (err < 0) {
        drop_text(delivery);
        ask_later(delivery);
    }
}

static void wait_for_decision(struct delivery *delivery, enum ledger_row seen)
{
    struct wait *wait = malloc(sizeof(*wait));

    if (!wait) {
        record(delivery, OUTCOME_AMBIGUOUS, VIA_LEDGER, "undecided", "out of memory");
        return;
    }
    free(delivery->work); /* of the same entry's earlier attempt */
    delivery->work = wait;
    *wait = (struct wait){
        .next_mono_ms = clock_mono_ms(),
        .until_mono_ms = clock_mono_ms() + delivery->worker->settings->ledger_poll_window,
        .seen = seen == LEDGER_ROW_ABSENT ? LEDGER_ROW_UNREAD : seen,
    };
    ask_later(delivery);
}

/* ---- the request ---- */

/* Any status but 2xx: this attempt failed, as far as its sender knows. Whether a row was written
 * all the same is looked up before the next one. */
static void record_refusal(struct delivery *delivery, const struct transfer_result *result)
{
    struct verdict *verdict = &delivery->verdict;
    struct problem_body problem;

    problem_body_read(result->content_type, result->body, &problem);
    *verdict = (struct verdict){.outcome = OUTCOME_REJECTED, .retry_after_ms = -1};
    if (result->retry_after) {
        verdict->retry_after_ms =
            backoff_retry_after(result->retry_after, strlen(result->retry_after), clock_wall_ms(),
                                delivery->worker->settings->max_retry_after);
    }
    if (problem.code[0]) {
        snprintf(verdict->code, sizeof(verdict->code), "%s", problem.code);
    } else {
        snprintf(verdict->code, sizeof(verdict->code), "http_%d", result->status);
    }
    snprintf(verdict->message, sizeof(verdict->message), "the target answered %d%s%s",
             result->status, problem.detail[0] ? ": " : "", problem.detail);
    record_outcome(delivery);
}

static void on_delivered(const struct transfer_result *result, void *arg)
{
    struct delivery *delivery = arg;

    drop_text(delivery);
    attempt_answered(delivery);
    if (result->is_refused_address) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, result->failure);
        return;
    }
    if (attempt_was_too_late(delivery, result)) {
        return;
    }
    if (result->status == 0) {
        record(delivery, result->is_started ? OUTCOME_AMBIGUOUS : OUTCOME_TRANSIENT, VIA_ANSWER,
               result->is_started ? "no_answer" : "not_reached", result->failure);
        return;
    }
    if (result->status < 200 || result->status > 299) {
        record_refusal(delivery, result);
        return;
    }
    const enum ledger_row row = ledger_answer_read(result->status, result->body);

    if (!is_decided(delivery, row, VIA_ANSWER)) {
        wait_for_decision(delivery, row);
    }
}

static void deliver(struct delivery *delivery)
{
    const struct ledger_address address = address_of(delivery);
    struct transfer_request request;
    int err = ledger_request_deliver(&address, delivery->entry, row_of(delivery), delivery->sends,
                                     delivery->kind->timeout_ms, &delivery->text, &request);

    if (err == 0) {
        request.may_start = attempt_may_start;
        request.first_byte_timeout_ms = delivery->kind->first_byte_timeout_ms;
        err = transfer_start(delivery->worker->transfers, &request, attempt_started, on_delivered,
                             delivery);
    }
    if (err == -EINVAL) {
        char problem[sizeof(delivery->text.problem)];

        memcpy(problem, delivery->text.problem, sizeof(problem));
        drop_text(delivery);
        record_failed(delivery, CODE_EXECUTOR_ERROR,
                      problem[0] ? problem : "the request cannot be built");
    } else if (err < 0) {
        drop_text(delivery);
        record_release(delivery, 1000); /* out of memory: nothing was sent */
    }
}

const struct executor executor_ledger = {
    .name = "ledger",
    .send = deliver,
    .look_up = ledger_look_up,
    .guard = ledger_look_up,
    .owns_attempts = true,
};
