/* Acceptance: one message in, once (accept.lua). */
#include <stdlib.h>

#include "common/store/store_internal.h"

#define ENCODED_BODY_MAX (128u << 20)

int accept_result_of(struct span name, enum accept_result *ret)
{
    static const struct {
        const char *name;
        enum accept_result result;
    } rows[] = {
        {"accepted", ACCEPT_ACCEPTED},
        {"duplicate", ACCEPT_DUPLICATE},
        {"reuse", ACCEPT_KEY_REUSE},
        {"full", ACCEPT_SESSION_FULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_equal(name, span_of(rows[i].name))) {
            *ret = rows[i].result;
            return 0;
        }
    }
    return -1;
}

static void read_accept(struct pending *pending, enum store_result result,
                        const struct redisReply *reply)
{
    store_accept_cb *cb = (store_accept_cb *)pending->cb;
    struct accept_answer answer = {0};

    if (result == STORE_OK &&
        (!reply_is_array(reply, 5) ||
         accept_result_of(reply_span(reply->element[0]), &answer.result) < 0)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    answer.id = reply_span(reply->element[1]);
    answer.entry_status = reply_span(reply->element[2]);
    answer.accepted_at_ms = reply_number(reply->element[3]);
    answer.now_ms = reply_number(reply->element[4]);
    cb(STORE_OK, &answer, pending->arg);
}

void store_accept(struct store *store, const struct accept_request *request, store_accept_cb *cb,
                  void *arg)
{
    const uint32_t p = partition_of(request->workspace.ptr, request->workspace.len);
    const struct entry_body *body = request->body;
    struct call call;
    struct buf bytes;

    buf_init(&bytes, ENCODED_BODY_MAX);
    call_init(&call, store, SCRIPT_ACCEPT, p);
    call_key(&call, "outboxq", p, request->workspace, request->session);
    call_encoded(&call, request->workspace);
    call_encoded(&call, request->session);
    call_span(&call, request->id);
    call_span(&call, body->client_message_id);
    call_span(&call, request->digest);
    call_span(&call, body->kind);
    call_span(&call, request->flags);
    call_span(&call, body->user_id);
    if (entry_body_encode(body, &bytes) < 0) {
        call.has_overflown = true;
    }
    call_span(&call, (struct span){bytes.bytes, bytes.len});
    call_number(&call, request->session_cap);
    for (uint32_t i = 0; i < body->depends_on_count; i++) {
        call_encoded(&call, body->depends_on[i]);
    }
    call.is_durable = true;
    call_send(&call, read_accept, (void (*)(void))cb, arg);
    buf_done(&bytes);
}
