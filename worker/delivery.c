/* Taking a claim over, what to do with its entry, and letting go. */
#include "worker/delivery.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/operate_plan.h"
#include "worker/claim.h"
#include "worker/executor.h"
#include "worker/held.h"
#include "worker/kind_places.h"
#include "worker/reconcile.h"
#include "worker/target_gate.h"
#include "worker/worker.h"

#define STILL_HELD_MS 250
#define NO_PLACE_MS   1000 /* the same for all: among entries of one session none overtakes */
#define PAYLOAD_MAX   (256U << 20)

static struct span workspace_of(const struct delivery *delivery)
{
    return (struct span){delivery->workspace, delivery->workspace_len};
}

static struct span session_of(const struct delivery *delivery)
{
    return (struct span){delivery->session, delivery->session_len};
}

struct claim_ref delivery_ref(const struct delivery *delivery)
{
    return (struct claim_ref){
        .workspace = workspace_of(delivery),
        .session = session_of(delivery),
        .id = delivery->entry->id,
        .token = delivery->token,
        .sends = delivery->sends,
        .status = delivery->status,
    };
}

struct lookup_subject delivery_subject(const struct delivery *delivery)
{
    return (struct lookup_subject){
        .workspace = workspace_of(delivery),
        .entry = delivery->entry,
        .kind = delivery->kind,
        .target = delivery->target,
        .status = delivery->status,
        .attempts = delivery->entry->attempts,
    };
}

static void show(struct delivery *delivery)
{
    struct shm_lock lock = {
        .activity = delivery->status == STATUS_DELIVERING ? SHM_LOCK_SENDING : SHM_LOCK_VERIFYING,
        .kind = delivery->kind ? delivery->kind->place : UINT32_MAX,
        .started_mono_ms = clock_mono_ms(),
    };

    snprintf(lock.workspace, sizeof(lock.workspace), "%.*s", (int)delivery->workspace_len,
             delivery->workspace);
    snprintf(lock.session, sizeof(lock.session), "%.*s", (int)delivery->session_len,
             delivery->session);
    if (delivery->shown >= 0) {
        lock_table_clear(delivery->worker->shm, delivery->shown);
    }
    delivery->shown = lock_table_put(delivery->worker->shm, &lock);
}

/* What belongs to one entry, not to the session. */
static void drop_entry(struct delivery *delivery)
{
    kind_place_leave(delivery);
    target_gate_leave(delivery);
    free(delivery->entry);
    delivery->entry = NULL;
    free(delivery->work);
    delivery->work = NULL;
    json_decref(delivery->target_owner);
    delivery->target_owner = NULL;
    buf_done(&delivery->payload);
    buf_init(&delivery->payload, PAYLOAD_MAX);
    http_request_text_done(&delivery->text);
    http_request_text_init(&delivery->text);
}

static void drop_verdict(struct delivery *delivery)
{
    free(delivery->verdict.conflict_current);
    free(delivery->verdict.result);
    delivery->verdict = (struct verdict){0};
}

/* The entry and the claim it came with. False when out of memory. */
static bool load(struct delivery *delivery, const struct claim *claim, int64_t sent_boot_ms)
{
    drop_entry(delivery);
    delivery->entry = entry_copy(&claim->entry);
    if (!delivery->entry ||
        entry_payload(delivery->entry, &delivery->payload, &delivery->entry->body.payload) < 0) {
        return false;
    }
    const struct entry *entry = delivery->entry;

    snprintf(delivery->id, sizeof(delivery->id), "%.*s", (int)entry->id.len, entry->id.ptr);
    delivery->is_target_readable =
        target_read(claim->target_conf, &delivery->worker->target, workspace_of(delivery),
                    &delivery->target, &delivery->target_owner) == 0;
    delivery->kind =
        settings_kind(delivery->worker->settings, entry->body.kind.ptr, entry->body.kind.len);
    delivery->executor = delivery->kind ? executor_of(&delivery->target, delivery->kind) : NULL;
    delivery->mode = claim->mode;
    delivery->status = entry->status;
    delivery->sends = entry->sends;
    delivery->token = claim->token;
    delivery->lock_boot_ms = sent_boot_ms;
    delivery->claim_store_ms = claim->now_ms;
    delivery->claim_mono_ms = clock_mono_ms();
    delivery->request_mono_ns = 0;
    delivery->is_guarded = false;
    delivery->must_ask_owner = false;
    delivery->repeat_ms = 0;
    show(delivery);
    return true;
}

static void on_repeat_closed(uv_handle_t *handle)
{
    struct delivery *delivery = handle->data;
    struct worker *worker = delivery->worker;

    drop_entry(delivery);
    http_request_text_done(&delivery->text);
    free(delivery);
    worker_check_drained(worker);
}

void delivery_end(struct delivery *delivery)
{
    struct worker *worker = delivery->worker;

    kind_place_leave(delivery);
    target_gate_leave(delivery);
    if (delivery->is_detached) {
        worker->detached--;
    } else {
        held_remove(worker->held, workspace_of(delivery), session_of(delivery));
    }
    metrics_set(worker->metrics, METRIC_locks_held, 0, held_count(worker->held));
    if (delivery->shown >= 0) {
        lock_table_clear(worker->shm, delivery->shown);
    }
    drop_verdict(delivery);
    uv_close((uv_handle_t *)&delivery->repeat, on_repeat_closed);
    scheduler_place_freed(worker->scheduler);
}

/* Gives back what can't be taken over. A call that failed on a living connection is made good by
 * reconciliation; one that was cut, by that after the reconnect. */
static void on_given_back(enum store_result result, bool yes, void *arg)
{
    struct worker *worker = arg;

    (void)yes;
    worker->giving_back--;
    if (result != STORE_OK && !worker->is_draining && store_is_up(worker->store)) {
        reconcile_start(worker->reconcile);
    }
    worker_check_drained(worker);
}

static void give_back(struct worker *worker, const struct claim *claim, int64_t delay_ms)
{
    const struct claim_ref ref = {
        .workspace = claim->workspace,
        .session = claim->entry.session,
        .id = claim->entry.id,
        .token = claim->token,
        .sends = claim->entry.sends,
        .status = claim->entry.status,
    };

    worker->giving_back++;
    store_release(worker->store, &ref, delay_ms, on_given_back, worker);
}

/* The session is claimed anew while a request of ours is still under way: its lock was taken away,
 * for an echo confirmed the entry. The lane goes on; what becomes of the request is still told to
 * the store, which may have somebody waiting for its answer. */
static bool detach(struct delivery *delivery)
{
    struct worker *worker = delivery->worker;

    if (delivery->step != STEP_REQUESTING && delivery->step != STEP_LOOKING_UP &&
        delivery->step != STEP_GUARDING) {
        return false;
    }
    held_remove(worker->held, workspace_of(delivery), session_of(delivery));
    delivery->is_detached = true;
    worker->detached++;
    return true;
}

void delivery_take(struct worker *worker, const struct claim *claim, int64_t sent_boot_ms)
{
    struct delivery *delivery = held_find(worker->held, claim->workspace, claim->entry.session);

    if (delivery && strcmp(delivery->token.text, claim->token.text) == 0) {
        return; /* the same answer told twice */
    }
    if (delivery && !detach(delivery)) {
        /* Its outcome was applied, but that answer was lost with a connection: it is still to be
         * asked for again. Until then the session has no room for a second claim. */
        give_back(worker, claim, STILL_HELD_MS);
        scheduler_mark_later(worker->scheduler,
                             partition_of(claim->workspace.ptr, claim->workspace.len),
                             STILL_HELD_MS);
        return;
    }
    if (worker->is_draining || claim->workspace.len >= sizeof(delivery->workspace) ||
        claim->entry.session.len >= sizeof(delivery->session)) {
        give_back(worker, claim, 0);
        return;
    }
    delivery = calloc(1, sizeof(*delivery));
    if (!delivery) {
        give_back(worker, claim, 0);
        return;
    }
    delivery->worker = worker;
    delivery->shown = -1;
    memcpy(delivery->workspace, claim->workspace.ptr, claim->workspace.len);
    delivery->workspace_len = claim->workspace.len;
    memcpy(delivery->session, claim->entry.session.ptr, claim->entry.session.len);
    delivery->session_len = claim->entry.session.len;
    http_request_text_init(&delivery->text);
    if (held_insert(worker->held, workspace_of(delivery), session_of(delivery), delivery) < 0) {
        free(delivery);
        give_back(worker, claim, 0);
        return;
    }
    metrics_set(worker->metrics, METRIC_locks_held, 0, held_count(worker->held));
    uv_timer_init(worker->loop, &delivery->repeat);
    delivery->repeat.data = delivery;
    delivery_go_on(delivery, claim, sent_boot_ms);
}

void delivery_go_on(struct delivery *delivery, const struct claim *next, int64_t sent_boot_ms)
{
    delivery->is_chained = delivery->entry != NULL;
    if (!load(delivery, next, sent_boot_ms)) {
        give_back(delivery->worker, next, 0);
        delivery_end(delivery);
        return;
    }
    log_debug("entry claimed", "workspace", delivery->workspace, "session", delivery->session,
              "entry", delivery->id, "status", entry_status_name(delivery->status), "sends",
              LOG_I64(delivery->sends));
    delivery_begin(delivery);
}

/* The target is asked, by `how`, if this is a time for that; else the session rests. */
static void ask_target(struct delivery *delivery, void (*how)(struct delivery *delivery))
{
    struct span reason;
    const int64_t rest_ms = target_gate_enter(delivery, &reason);

    if (rest_ms > 0) {
        log_debug("entry rests", "workspace", delivery->workspace, "session", delivery->session,
                  "entry", delivery->id, "for_ms", LOG_I64(rest_ms));
        record_rest(delivery, rest_ms, reason);
        return;
    }
    how(delivery);
}

/* A kind whose unknown outcomes can be neither repeated nor looked up. */
static void decide_without_lookup(struct delivery *delivery)
{
    switch (delivery->kind->on_ambiguous) {
    case ON_AMBIGUOUS_RETRY:
        ask_target(delivery, attempt_begin_send);
        return;
    case ON_AMBIGUOUS_ERROR:
        break;
    }
    delivery->verdict = (struct verdict){.outcome = OUTCOME_UNKNOWN, .retry_after_ms = -1};
    snprintf(
        delivery->verdict.message, sizeof(delivery->verdict.message),
        "it is not known whether the target has it, and the kind declares no look-up (verify)");
    record_outcome(delivery);
}

/* The kind was idempotent when the entry was accepted, so that an earlier request may have been
 * left without an answer; now it is not, and can't be looked up either. */
static bool is_unknown_by_change(const struct delivery *delivery)
{
    const struct kind *kind = delivery->kind;
    const uint32_t requests = delivery->sends - (delivery->mode == CLAIM_SEND ? 1 : 0);
    const struct span flags = delivery->entry->flags;

    return requests > 0 && !kind->is_idempotent && !kind_can_look_up(kind) &&
           kind->on_ambiguous == ON_AMBIGUOUS_ERROR && flags.len > 0 &&
           memchr(flags.ptr, ENTRY_FLAG_IDEMPOTENT, flags.len);
}

static void fail_unknown(struct delivery *delivery)
{
    record_failed(delivery, CODE_OUTCOME_UNKNOWN,
                  "its kind is no longer idempotent, an earlier request may have arrived, and the "
                  "kind declares no look-up (verify)");
}

/* The flags of acceptance said that it may go at once; the configuration of now has the last word.
 */
static void begin_claimed_send(struct delivery *delivery)
{
    const struct kind *kind = delivery->kind;

    if (!kind->is_idempotent && kind_can_look_up(kind) && delivery->sends > 1) {
        ask_target(delivery, attempt_look_up);
    } else if (is_unknown_by_change(delivery)) {
        fail_unknown(delivery);
    } else {
        ask_target(delivery, attempt_request);
    }
}

static void begin_verify(struct delivery *delivery)
{
    const struct kind *kind = delivery->kind;
    const bool was_refused =
        delivery->status == STATUS_PENDING; /* definitely, by every earlier attempt */

    if (!kind->is_idempotent && kind_can_look_up(kind)) {
        ask_target(delivery, attempt_look_up);
    } else if (was_refused && is_unknown_by_change(delivery)) {
        fail_unknown(delivery);
    } else if (kind->is_idempotent || was_refused) {
        ask_target(delivery, attempt_begin_send);
    } else {
        decide_without_lookup(delivery);
    }
}

/* An executor that can ask about its previous attempt does; if another one left it, its outcome is
 * unknown. */
static void begin_poll(struct delivery *delivery)
{
    const struct kind *kind = delivery->kind;
    enum outcome outcome = OUTCOME_UNKNOWN;

    if (delivery->executor->owns_attempts) {
        ask_target(delivery, attempt_look_up);
        return;
    }
    if (kind->is_idempotent ||
        (!kind_can_look_up(kind) && kind->on_ambiguous == ON_AMBIGUOUS_RETRY)) {
        outcome = OUTCOME_RETRY;
    } else if (kind_can_look_up(kind)) {
        outcome = OUTCOME_AMBIGUOUS;
    }
    delivery->verdict = (struct verdict){.outcome = outcome, .retry_after_ms = -1};
    snprintf(delivery->verdict.message, sizeof(delivery->verdict.message),
             "the executor of its previous attempt is no longer configured");
    record_outcome(delivery);
}

static void begin_in_mode(struct delivery *delivery)
{
    switch (delivery->mode) {
    case CLAIM_SEND:
        begin_claimed_send(delivery);
        return;
    case CLAIM_POLL:
        begin_poll(delivery);
        return;
    case CLAIM_VERIFY:
        begin_verify(delivery);
        return;
    }
}

void delivery_begin(struct delivery *delivery)
{
    const struct kind *kind = delivery->kind;

    if (!delivery->entry->is_readable) {
        record_failed(delivery, CODE_EXECUTOR_ERROR, "the stored entry cannot be read");
        return;
    }
    if (!kind) {
        record_failed(delivery, CODE_NO_EXECUTOR, "its kind is not declared in the configuration");
        return;
    }
    if (!delivery->is_target_readable) {
        record_failed(delivery, CODE_EXECUTOR_ERROR,
                      "the workspace's own target cannot be read: set it again");
        return;
    }
    switch (kind_place_enter(delivery)) {
    case KIND_PLACE_TAKEN:
        begin_in_mode(delivery);
        return;
    case KIND_PLACE_WAITING:
        delivery->step = STEP_WAITING;
        return;
    case KIND_PLACE_NONE:
        delivery_find_no_place(delivery);
        return;
    }
}

void delivery_begin_in_place(struct delivery *delivery)
{
    delivery->must_ask_owner = true;
    begin_in_mode(delivery);
}

void delivery_find_no_place(struct delivery *delivery)
{
    record_release(delivery, delivery->worker->is_draining ? 0 : NO_PLACE_MS);
}
