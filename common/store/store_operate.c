/* The rounds of one operation: related.lua, the resolver, carry_out.lua. */
#include "common/store/store_operate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/operate_plan.h"
#include "common/store/store_claim_reply.h"
#include "common/store/store_internal.h"

#define RELATED_MAX 1000
#define ROUNDS_MAX  16

struct operate {
    struct store *store;
    struct operate_request request; /* its spans point into `text` */
    char *text;
    uint32_t rounds;
    enum resolver_what what;
    struct span subject; /* points into subject_room */
    char subject_room[64];
    store_operate_cb *cb;
    void *arg;
};

static void end(struct operate *operate, enum store_result result,
                const struct operate_answer *answer)
{
    operate->cb(result, answer, operate->arg);
    free(operate->text);
    free(operate);
}

static void end_with(struct operate *operate, enum operate_result result, struct span how,
                     int64_t now_ms)
{
    const struct operate_answer answer = {
        .result = result,
        .what = operate->what,
        .subject = operate->subject,
        .how = how,
        .now_ms = now_ms,
    };

    end(operate, STORE_OK, &answer);
}

static void read_related(struct pending *pending, enum store_result result,
                         const struct redisReply *reply);

static void ask_related(struct operate *operate)
{
    const struct operate_request *request = &operate->request;
    const uint32_t p = partition_of(request->workspace.ptr, request->workspace.len);
    struct call call;

    call_init(&call, operate->store, SCRIPT_RELATED, p);
    call_key(&call, "outboxe", p, request->workspace, request->id);
    call_encoded(&call, request->workspace);
    call_encoded(&call, request->id);
    call_number(&call, RELATED_MAX);
    call_send(&call, read_related, NULL, operate);
}

/* ---- carrying out ---- */

static void read_carried_out(struct pending *pending, enum store_result result,
                             const struct redisReply *reply)
{
    struct operate *operate = pending->arg;
    struct entry entry;
    struct entry_text text;

    if (result == STORE_OK && !reply_is_array(reply, 3)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        end(operate, result, NULL);
        return;
    }
    if (!span_equal(reply_span(reply->element[0]), span_of("done"))) {
        if (++operate->rounds < ROUNDS_MAX) {
            ask_related(operate);
        } else {
            end_with(operate, OPERATE_CONTENDED, (struct span){0}, 0);
        }
        return;
    }
    struct operate_answer answer = {
        .result = OPERATE_DONE,
        .what = operate->what,
        .subject = operate->subject,
        .now_ms = reply_number(reply->element[1]),
    };

    if (reply_entry(reply->element[2], operate->subject, &text, &entry) == 0) {
        answer.entry = &entry;
    }
    end(operate, STORE_OK, &answer);
}

static void carry_out(struct operate *operate, const struct operate_plan *plan)
{
    const struct operate_request *request = &operate->request;
    const uint32_t p = partition_of(request->workspace.ptr, request->workspace.len);
    struct call call;

    call_init(&call, operate->store, SCRIPT_CARRY_OUT, p);
    call_key(&call, "outboxe", p, request->workspace, request->id);
    call_encoded(&call, request->workspace);
    call_number(&call, operate->store->dedupe_ttl_ms);
    call_span(&call, (struct span){plan->bytes.bytes, plan->bytes.len});
    call.is_durable = true;
    call_send(&call, read_carried_out, NULL, operate);
}

/* ---- planning ---- */

static enum operate_result operate_result_of(enum resolver_result result)
{
    switch (result) {
    case RESOLVER_DONE:
        return OPERATE_DONE;
    case RESOLVER_BUSY:
        return OPERATE_BUSY;
    case RESOLVER_NOT_FAILED:
        return OPERATE_NOT_FAILED;
    case RESOLVER_ALREADY_SENT:
        return OPERATE_ALREADY_SENT;
    }
    return OPERATE_CONTENDED;
}

static void plan(struct operate *operate, const struct redisReply *rows, int64_t now_ms)
{
    struct operate_plan plan;
    const int err = operate_plan_make(&operate->request, rows, now_ms, &plan);

    operate->what = plan.what;
    snprintf(operate->subject_room, sizeof(operate->subject_room), "%.*s", (int)plan.subject.len,
             plan.subject.ptr);
    operate->subject = span_of(operate->subject_room);
    if (err == -ENOMEM) {
        end(operate, STORE_FULL, NULL);
    } else if (err < 0) {
        end_with(operate, OPERATE_BAD_PATCH, (struct span){0}, now_ms);
    } else if (plan.was_done) {
        end_with(operate, OPERATE_DONE, (struct span){0}, now_ms);
    } else if (plan.result != RESOLVER_DONE) {
        end_with(operate, operate_result_of(plan.result), (struct span){0}, now_ms);
    } else {
        carry_out(operate, &plan);
    }
    operate_plan_done(&plan);
}

static void read_related(struct pending *pending, enum store_result result,
                         const struct redisReply *reply)
{
    struct operate *operate = pending->arg;

    if (result == STORE_OK &&
        (!reply_is_array(reply, 5) || !reply_is_array(reply->element[3], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        end(operate, result, NULL);
        return;
    }
    const int64_t now_ms = reply_number(reply->element[0]);
    const struct span what = reply_span(reply->element[1]);

    if (span_equal(what, span_of("found"))) {
        plan(operate, reply->element[3], now_ms);
    } else if (span_equal(what, span_of("too_many"))) {
        end_with(operate, OPERATE_TOO_MANY, (struct span){0}, now_ms);
    } else if (span_equal(what, span_of("ended")) && operate->request.new_id.len > 0 &&
               span_equal(reply_span(reply->element[4]), operate->request.new_id)) {
        operate->what =
            RESOLVER_RETRIED; /* an earlier run of this very retry: it has been sent since */
        operate->subject = operate->request.id;
        end_with(operate, OPERATE_DONE, (struct span){0}, now_ms);
    } else if (span_equal(what, span_of("ended"))) {
        end_with(operate, OPERATE_ENDED, reply_span(reply->element[2]), now_ms);
    } else {
        end_with(operate, OPERATE_NOT_FOUND, (struct span){0}, now_ms);
    }
}

/* ---- the request ---- */

static int copy_request(struct operate *operate, const struct operate_request *request)
{
    operate->request = *request;
    struct span *const spans[] = {
        &operate->request.workspace,   &operate->request.id,
        &operate->request.new_id,      &operate->request.patch.text,
        &operate->request.patch.model, &operate->request.patch.payload,
    };
    size_t total = 1, at = 0;

    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        total += spans[i]->len;
    }
    operate->text = malloc(total);
    if (!operate->text) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        if (spans[i]->len > 0) {
            memcpy(operate->text + at, spans[i]->ptr, spans[i]->len);
        }
        spans[i]->ptr = operate->text + at;
        at += spans[i]->len;
    }
    return 0;
}

void store_operate(struct store *store, const struct operate_request *request, store_operate_cb *cb,
                   void *arg)
{
    struct operate *operate = calloc(1, sizeof(*operate));

    if (!operate || copy_request(operate, request) < 0) {
        free(operate);
        cb(STORE_FULL, NULL, arg);
        return;
    }
    operate->store = store;
    operate->cb = cb;
    operate->arg = arg;
    ask_related(operate);
}

/* ---- the echo ---- */

static void read_confirm(struct pending *pending, enum store_result result,
                         const struct redisReply *reply)
{
    store_confirm_cb *cb = (store_confirm_cb *)pending->cb;
    struct confirm_answer answer = {0};
    char session[SESSION_MAX];

    if (result == STORE_OK && !reply_is_array(reply, 4)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    answer.is_confirmed = reply_number(reply->element[1]) != 0;
    answer.is_new = reply_number(reply->element[2]) != 0;
    answer.session = read_name(reply_span(reply->element[3]), session, sizeof(session));
    cb(STORE_OK, &answer, pending->arg);
}

void store_confirm(struct store *store, const struct confirm_request *request, store_confirm_cb *cb,
                   void *arg)
{
    const uint32_t p = partition_of(request->workspace.ptr, request->workspace.len);
    struct call call;

    call_init(&call, store, SCRIPT_CONFIRM, p);
    call_key(&call, "outboxconf", p, request->workspace, (struct span){0});
    call_encoded(&call, request->workspace);
    call_encoded(&call, request->id);
    call_encoded(&call, request->session);
    call_encoded(&call, request->client_message_id);
    call_span(&call, request->result);
    call_number(&call, store->dedupe_ttl_ms);
    call_number(&call, request->wait_for_answer_ms);
    call.is_durable = true;
    call_send(&call, read_confirm, (void (*)(void))cb, arg);
}
