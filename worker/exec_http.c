/* The executor `http`: one request as its kind describes it, one look-up as its kind describes it.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/core/backoff.h"
#include "common/core/payload_merge.h"
#include "worker/answer.h"
#include "worker/delivery.h"
#include "worker/executor.h"
#include "worker/problem_body.h"
#include "worker/transfer.h"
#include "worker/worker.h"

#define RESULT_MAX (64U << 10) /* a longer answer is no result: it fills nothing */

/* ---- the request ---- */

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

/* What the answer tells of what was made: for the null members of those that wait for it. */
static void keep_result(struct delivery *delivery, const struct transfer_result *result)
{
    struct buf line;
    size_t len;

    buf_init(&line, RESULT_MAX);
    if (result->is_complete && result->body.len <= RESULT_MAX &&
        payload_result(result->body, &line) == 0) {
        delivery->verdict.result = buf_steal(&line, &len);
    }
    buf_done(&line);
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
    if (attempt_was_too_late(delivery, result)) {
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
    if (reading.outcome == OUTCOME_CONFIRMED) {
        keep_result(delivery, result);
    } else {
        describe(delivery, result, &problem);
    }
    if (reading.outcome == OUTCOME_CONFLICT) {
        keep_conflict(delivery, result, &problem);
    }
    if (reading.outcome == OUTCOME_AMBIGUOUS && !kind->verify.url) {
        verdict->outcome =
            kind->on_ambiguous == ON_AMBIGUOUS_RETRY ? OUTCOME_RETRY : OUTCOME_UNKNOWN;
    }
    attempt_answered(delivery);
    record_outcome(delivery);
}

static void send_request(struct delivery *delivery)
{
    struct worker *worker = delivery->worker;
    struct transfer_request request;
    const struct span workspace = {delivery->workspace, delivery->workspace_len};
    int err = http_request_build(delivery->kind, &delivery->target, workspace, delivery->entry,
                                 delivery->sends, &delivery->text, &request);

    if (err == 0) {
        request.may_start = attempt_may_start;
        err = transfer_start(worker->transfers, &request, attempt_started, on_answer, delivery);
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

/* ---- the look-up ---- */

struct lookup {
    const struct lookup_subject *subject;
    struct http_request_text text;
    int64_t asked_mono_ms;
    lookup_done_cb *done;
    void *arg;
};

static void lookup_end(struct lookup *lookup, struct lookup_result *result)
{
    result->asked_mono_ms = lookup->asked_mono_ms;
    lookup->done(result, lookup->arg);
    http_request_text_done(&lookup->text);
    free(lookup);
}

static bool is_in(const struct status_list *list, int status)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->codes[i] == status) {
            return true;
        }
    }
    return false;
}

static struct lookup_result read_lookup(const struct verify_lookup *verify,
                                        const struct transfer_result *answer)
{
    struct lookup_result result;

    if (is_in(&verify->delivered, answer->status)) {
        return lookup_result_make(LOOKUP_DELIVERED, "the target has it");
    }
    if (is_in(&verify->absent, answer->status)) {
        result = lookup_result_make(LOOKUP_ABSENT, "the target proved that it has not got it");
        snprintf(result.code, sizeof(result.code), "absent");
        return result;
    }
    if (answer->status > 0) {
        result = lookup_result_make(
            LOOKUP_INCONCLUSIVE, "the look-up answered %d, which proves nothing", answer->status);
    } else {
        result =
            lookup_result_make(LOOKUP_INCONCLUSIVE, "the look-up failed: %.200s", answer->failure);
        result.is_reached = answer->is_started;
    }
    snprintf(result.code, sizeof(result.code), "inconclusive");
    return result;
}

static void on_lookup_answer(const struct transfer_result *answer, void *arg)
{
    struct lookup *lookup = arg;
    struct lookup_result result = read_lookup(&lookup->subject->kind->verify, answer);

    lookup_end(lookup, &result);
}

static int look_up(struct worker *worker, const struct lookup_subject *subject,
                   lookup_done_cb *done, void *arg)
{
    struct transfer_request request;
    struct lookup *lookup = calloc(1, sizeof(*lookup));

    if (!lookup) {
        return -ENOMEM;
    }
    lookup->subject = subject;
    lookup->done = done;
    lookup->arg = arg;
    lookup->asked_mono_ms = clock_mono_ms();
    http_request_text_init(&lookup->text);
    int err = http_request_build_lookup(subject->kind, &subject->target, subject->workspace,
                                        subject->entry, worker->settings->verify_timeout,
                                        &lookup->text, &request);

    if (err == 0) {
        err = transfer_start(worker->transfers, &request, NULL, on_lookup_answer, lookup);
    }
    if (err == -EINVAL) {
        struct lookup_result result = lookup_result_make(
            LOOKUP_BROKEN, "%s",
            lookup->text.problem[0] ? lookup->text.problem : "the look-up cannot be built");

        lookup_end(lookup, &result);
        return 0;
    }
    if (err < 0) {
        http_request_text_done(&lookup->text);
        free(lookup);
    }
    return err;
}

const struct executor executor_http = {
    .name = "http",
    .send = send_request,
    .look_up = look_up,
};
