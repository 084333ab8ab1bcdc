/* What follows a claim: finish, settle, begin_send, release, owns. Each names the claim it belongs
 * to. */
#include <stdlib.h>

#include "common/store/store_claim_reply.h"

const char *sent_via_name(enum sent_via via)
{
    switch (via) {
    case VIA_ANSWER:
        return "answer";
    case VIA_VERIFICATION:
        return "verification";
    case VIA_LEDGER:
        return "ledger";
    case VIA_ECHO:
        return "echo";
    }
    return "answer";
}

static const char *event_name(enum entry_event event)
{
    switch (event) {
    case EVENT_NONE:
        return "";
    case EVENT_SENT:
        return "sent";
    case EVENT_VERIFYING:
        return "verifying";
    case EVENT_RETRYING:
        return "retrying";
    case EVENT_ERROR:
        return "error";
    }
    return "";
}

/* The arguments that all of these scripts begin with. */
static void call_claim(struct call *call, struct store *store, enum script_id script,
                       const struct claim_ref *ref)
{
    const uint32_t p = partition_of(ref->workspace.ptr, ref->workspace.len);

    call_init(call, store, script, p);
    call_key(call, "outboxq", p, ref->workspace, ref->session);
    call_encoded(call, ref->workspace);
    call_encoded(call, ref->session);
    call_span(call, ref->id);
    call_str(call, ref->token.text);
}

static void read_outcome(struct pending *pending, enum store_result result,
                         const struct redisReply *reply)
{
    store_outcome_cb *cb = (store_outcome_cb *)pending->cb;
    struct outcome_answer answer = {0};
    struct claim_room room;

    if (result == STORE_OK && !reply_is_array(reply, 3)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    answer.applied = reply_number(reply->element[1]) != 0;
    answer.next_due_ms = reply_number(reply->element[2]);
    if (reply->elements > 3 &&
        claim_reply_read(reply->element[3], reply_number(reply->element[0]), &room) == 0) {
        answer.next = &room.claim;
    }
    cb(STORE_OK, &answer, pending->arg);
}

void store_finish(struct store *store, const struct claim_ref *ref, enum sent_via via,
                  struct span result, bool want_next, store_outcome_cb *cb, void *arg)
{
    struct call call;

    call_claim(&call, store, SCRIPT_FINISH, ref);
    call_number(&call, store->lock_ttl_ms);
    call_number(&call, store->dedupe_ttl_ms);
    call_str(&call, sent_via_name(via));
    call_span(&call, result);
    call_number(&call, want_next);
    call.is_durable = want_next;
    call_send(&call, read_outcome, (void (*)(void))cb, arg);
}

void store_settle(struct store *store, const struct settle_request *request, store_outcome_cb *cb,
                  void *arg)
{
    const struct lifecycle_step *step = &request->step;
    struct call call;

    call_claim(&call, store, SCRIPT_SETTLE, &request->ref);
    call_number(&call, store->lock_ttl_ms);
    call_number(&call, request->ref.sends);
    call_str(&call, entry_status_name(request->ref.status));
    call_str(&call, entry_status_name(step->state.status));
    call_number(&call, step->state.attempts);
    call_number(&call, step->state.verify_attempts);
    call_number(&call, step->state.transient_fails);
    call_number(&call, step->delay_ms);
    call_span(&call, request->error_code);
    call_span(&call, request->error_message);
    call_span(&call, request->conflict_current);
    call_str(&call, event_name(step->event));
    call_number(&call, request->want_next);
    call_span(&call, request->sweep);
    call_number(&call, request->is_unsent);
    call.is_durable = request->want_next;
    call_send(&call, read_outcome, (void (*)(void))cb, arg);
}

static void read_begin_send(struct pending *pending, enum store_result result,
                            const struct redisReply *reply)
{
    store_begin_send_cb *cb = (store_begin_send_cb *)pending->cb;

    if (result == STORE_OK && !reply_is_array(reply, 3)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    const struct begin_send_answer answer = {
        .applied = reply_number(reply->element[1]) != 0,
        .sends = (uint32_t)reply_number(reply->element[2]),
        .now_ms = reply_number(reply->element[0]),
    };
    cb(STORE_OK, &answer, pending->arg);
}

void store_begin_send(struct store *store, const struct claim_ref *ref, store_begin_send_cb *cb,
                      void *arg)
{
    struct call call;

    call_claim(&call, store, SCRIPT_BEGIN_SEND, ref);
    call_number(&call, store->lock_ttl_ms);
    call_number(&call, ref->sends);
    call.is_durable = true;
    call_send(&call, read_begin_send, (void (*)(void))cb, arg);
}

static void read_flag(struct pending *pending, enum store_result result,
                      const struct redisReply *reply)
{
    store_flag_cb *cb = (store_flag_cb *)pending->cb;

    cb(result, result == STORE_OK && reply_number(reply) != 0, pending->arg);
}

void store_note_baseline(struct store *store, const struct claim_ref *ref, struct span message_id,
                         store_flag_cb *cb, void *arg)
{
    struct call call;

    call_claim(&call, store, SCRIPT_NOTE_BASELINE, ref);
    call_span(&call, message_id);
    call.is_durable = true;
    call_send(&call, read_flag, (void (*)(void))cb, arg);
}

static void release(struct store *store, const struct claim_ref *ref, int64_t delay_ms,
                    bool is_hold, struct span reason, store_flag_cb *cb, void *arg)
{
    struct call call;

    call_claim(&call, store, SCRIPT_RELEASE, ref);
    if (ref->id.len > 0) {
        call_number(&call, ref->sends);
    } else {
        call_str(&call, "");
    }
    call_number(&call, delay_ms);
    call_number(&call, is_hold);
    call_span(&call, reason);
    call_send(&call, read_flag, (void (*)(void))cb, arg);
}

void store_release(struct store *store, const struct claim_ref *ref, int64_t delay_ms,
                   store_flag_cb *cb, void *arg)
{
    release(store, ref, delay_ms, false, (struct span){0}, cb, arg);
}

void store_hold(struct store *store, const struct claim_ref *ref, int64_t delay_ms,
                struct span reason, store_flag_cb *cb, void *arg)
{
    release(store, ref, delay_ms, true, reason, cb, arg);
}

void store_owns(struct store *store, const struct claim_ref *ref, store_flag_cb *cb, void *arg)
{
    const uint32_t p = partition_of(ref->workspace.ptr, ref->workspace.len);
    struct call call;

    call_init(&call, store, SCRIPT_OWNS, p);
    call_key(&call, "outboxlock", p, ref->workspace, ref->session);
    call_str(&call, ref->token.text);
    call_send(&call, read_flag, (void (*)(void))cb, arg);
}
