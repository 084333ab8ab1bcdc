/* The executor `opencode`: a short probe, then one POST for the whole turn. Contract §4. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/core/backoff.h"
#include "worker/delivery.h"
#include "worker/executor.h"
#include "worker/http_request.h"
#include "worker/opencode_answer.h"
#include "worker/opencode_ids.h"
#include "worker/opencode_lookup.h"
#include "worker/opencode_request.h"
#include "worker/transfer.h"
#include "worker/worker.h"

#define PROBE_TIMEOUT_MS 5000

/* One attempt; delivery->work. */
struct attempt {
    struct opencode_ids ids;
    int64_t deadline_mono_ms;
    bool takes_ids; /* the agent does */
    char newest[OPENCODE_BASELINE_MAX + 1];
};

static int64_t left_ms(const struct attempt *attempt, int64_t most)
{
    const int64_t left = attempt->deadline_mono_ms - clock_mono_ms();

    return left > most ? most : left > 1 ? left : 1;
}

/* Somebody in front of the agent says that it is not there. */
static bool is_unavailable(int status)
{
    return status == 502 || status == 503 || status == 504;
}

static void set_verdict(struct delivery *delivery, enum outcome outcome, const char *what,
                        const struct transfer_result *answer)
{
    struct verdict *verdict = &delivery->verdict;

    *verdict = (struct verdict){.outcome = outcome, .via = VIA_ANSWER, .retry_after_ms = -1};
    if (answer->status > 0) {
        snprintf(verdict->code, sizeof(verdict->code), "http_%d", answer->status);
        snprintf(verdict->message, sizeof(verdict->message), "%s answered %d", what,
                 answer->status);
    } else {
        snprintf(verdict->code, sizeof(verdict->code), "%s",
                 answer->is_started ? "no_answer" : "not_reached");
        snprintf(verdict->message, sizeof(verdict->message), "%s: %.200s", what, answer->failure);
    }
    if (answer->retry_after) {
        verdict->retry_after_ms =
            backoff_retry_after(answer->retry_after, strlen(answer->retry_after), clock_wall_ms(),
                                delivery->worker->settings->max_retry_after);
    }
}

static void set_not_an_agent(struct delivery *delivery, const struct transfer_result *answer)
{
    set_verdict(delivery, OUTCOME_FAILED, "what is no agent", answer);
    snprintf(delivery->verdict.code, sizeof(delivery->verdict.code), "%s",
             error_code_name(CODE_NOT_AN_AGENT));
}

/* What was asked before the prompt had no good answer: the prompt itself was not sent. */
static void give_up_before_prompt(struct delivery *delivery, const char *what,
                                  const struct transfer_result *answer)
{
    const bool is_refusal = answer->status >= 400 && !is_unavailable(answer->status);

    if (answer->is_refused_address) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, answer->failure);
        return;
    }
    if (answer->status > 0 && answer->status < 400 && answer->is_complete) {
        set_not_an_agent(delivery, answer); /* any path of the web app answers 200 */
    } else {
        set_verdict(delivery, is_refusal ? OUTCOME_REJECTED : OUTCOME_TRANSIENT, what, answer);
    }
    delivery->verdict.is_unsent = true;
    record_outcome(delivery);
}

/* A request could not be made at all. */
static void give_up(struct delivery *delivery, int err, const char *why)
{
    if (err == -EINVAL) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, why);
    } else {
        record_release(delivery, 1000); /* out of memory: nothing was sent */
    }
}

/* ---- the prompt ---- */

static void judge(struct delivery *delivery, const struct transfer_result *answer)
{
    if (answer->status == 0 && !answer->is_started) {
        set_verdict(delivery, OUTCOME_TRANSIENT, "the agent", answer);
    } else if (answer->status == 0 || (answer->status < 300 && !answer->is_complete)) {
        set_verdict(delivery, OUTCOME_AMBIGUOUS, "the agent", answer);
    } else if (answer->status >= 400) {
        set_verdict(delivery, OUTCOME_REJECTED, "the agent", answer);
    } else if (answer->status < 300 && opencode_is_reply(answer->body)) {
        set_verdict(delivery, OUTCOME_CONFIRMED, "the agent", answer);
    } else {
        set_not_an_agent(delivery, answer);
    }
}

static void on_answer(const struct transfer_result *answer, void *arg)
{
    struct delivery *delivery = arg;

    if (answer->is_refused_address) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, answer->failure);
        return;
    }
    if (attempt_was_too_late(delivery, answer)) {
        return;
    }
    judge(delivery, answer);
    attempt_answered(delivery);
    record_outcome(delivery);
}

static void post(struct delivery *delivery, bool with_ids)
{
    struct attempt *attempt = delivery->work;
    struct http_request_text *text = &delivery->text;

    http_request_text_done(text);
    http_request_text_init(text);
    int err = opencode_message_url(&delivery->target, delivery->entry->session, "", &text->url);
    err = err == 0
              ? opencode_prompt_body(delivery->entry, with_ids ? &attempt->ids : NULL, &text->body)
              : err;
    if (err == 0) {
        struct transfer_request request =
            opencode_get(&delivery->target, text->url.bytes, left_ms(attempt, INT64_MAX));

        request.method = "POST";
        request.may_start = attempt_may_start;
        request.body = (struct span){text->body.bytes, text->body.len};
        request.subject = delivery->entry->id;
        request.first_byte_timeout_ms = delivery->kind->first_byte_timeout_ms;
        err = http_request_add_headers(delivery->entry, delivery->sends, "application/json",
                                       &delivery->target, text, &request);
        err = err == 0 ? transfer_start(delivery->worker->transfers, &request, attempt_started,
                                        on_answer, delivery)
                       : err;
    }
    if (err < 0) {
        give_up(delivery, err, "the entry has no text: a kind of executor opencode takes one");
    }
}

/* ---- the baseline, for versions that take no message ID ---- */

static void note_baseline(uv_timer_t *timer);

static void on_noted(enum store_result result, bool yes, void *arg)
{
    struct delivery *delivery = arg;

    if (result != STORE_OK) {
        if (!record_repeat_later(delivery, result, note_baseline)) {
            delivery_end(delivery);
        }
        return;
    }
    if (!yes) {
        record_release(delivery, 0); /* the lock is lost, or another one has to go first */
        return;
    }
    post(delivery, ((const struct attempt *)delivery->work)->takes_ids);
}

static void note_baseline(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    const struct attempt *attempt = delivery->work;
    const struct claim_ref ref = delivery_ref(delivery);

    store_note_baseline(delivery->worker->store, &ref,
                        span_of(attempt->newest[0] ? attempt->newest : OPENCODE_EMPTY_TRANSCRIPT),
                        on_noted, delivery);
}

static void on_newest(const struct transfer_result *answer, void *arg)
{
    struct delivery *delivery = arg;
    struct attempt *attempt = delivery->work;

    if (answer->status != 200 || !answer->is_complete ||
        opencode_read_newest(answer->body, attempt->newest) < 0) {
        give_up_before_prompt(delivery, "the transcript", answer);
        return;
    }
    note_baseline(&delivery->repeat);
}

static void ask_newest(struct delivery *delivery)
{
    struct attempt *attempt = delivery->work;
    struct buf *url = &delivery->text.url;

    buf_reset(url);
    int err = opencode_message_url(&delivery->target, delivery->entry->session, "?limit=1", url);

    if (err == 0) {
        const struct transfer_request request =
            opencode_get(&delivery->target, url->bytes,
                         left_ms(attempt, delivery->worker->settings->verify_timeout));

        err = transfer_start(delivery->worker->transfers, &request, NULL, on_newest, delivery);
    }
    if (err < 0) {
        give_up(delivery, err, "the target's URL is none");
    }
}

/* ---- the probe ---- */

static void on_probed(const struct transfer_result *answer, void *arg)
{
    struct delivery *delivery = arg;
    const int status = answer->status;

    if (status == 0 || !answer->is_complete || status == 401 || status == 403 ||
        is_unavailable(status)) {
        give_up_before_prompt(delivery, "the agent's health", answer);
        return;
    }
    const struct opencode_version version = opencode_read_version(answer->body);
    const struct entry *entry = delivery->entry;
    struct attempt *attempt = delivery->work;

    attempt->takes_ids = opencode_takes_ids(version.text);
    /* One whose search has an end is sent behind that: it needs a new beginning. */
    if (entry->until.len > 0 || (!attempt->takes_ids && entry->baseline.len == 0)) {
        ask_newest(delivery);
    } else {
        post(delivery, attempt->takes_ids);
    }
}

/* A server that is starting takes connections and answers nothing on them, ever: a probe finds that
 * out in seconds, a prompt would after its whole timeout. It also tells the version, and that the
 * connection which the prompt will use is alive. */
static void send_prompt(struct delivery *delivery)
{
    struct attempt *attempt = calloc(1, sizeof(*attempt));
    struct buf *url = &delivery->text.url;
    int err = attempt ? 0 : -ENOMEM;

    free(delivery->work);
    delivery->work = attempt;
    if (err == 0) {
        attempt->deadline_mono_ms = clock_mono_ms() + delivery->kind->timeout_ms;
        err = opencode_ids_of(delivery->entry->id, &attempt->ids);
    }
    buf_reset(url);
    err = err == 0 ? opencode_health_url(&delivery->target, url) : err;
    if (err == 0) {
        const struct transfer_request request =
            opencode_get(&delivery->target, url->bytes, left_ms(attempt, PROBE_TIMEOUT_MS));

        err = transfer_start(delivery->worker->transfers, &request, NULL, on_probed, delivery);
    }
    if (err < 0) {
        give_up(delivery, err,
                delivery->target.url
                    ? "the entry's ID is none, or the target's URL"
                    : "no target is configured (setting target.url, or PUT …/target)");
    }
}

const struct executor executor_opencode = {
    .name = "opencode",
    .send = send_prompt,
    .look_up = opencode_look_up,
};
