/* Recovery: what is locked, and taking it back. Contract §8. */
#include <errno.h>
#include <stdlib.h>

#include "common/store/store_claim_reply.h"

struct held_room {
    char workspace[WORKSPACE_ENC_MAX + 1];
    char session[SESSION_ENC_MAX + 1];
};

/* Fills `held` and its names from {ws, ses, token, deadline, staged}. Returns false for what is no
 * such row. */
static bool read_row(const struct redisReply *row, int64_t now_ms, struct held_room *room,
                     struct held_session *held)
{
    if (!reply_is_array(row, 5)) {
        return false;
    }
    *held = (struct held_session){
        .workspace =
            read_name(reply_span(row->element[0]), room->workspace, sizeof(room->workspace)),
        .session = read_name(reply_span(row->element[1]), room->session, sizeof(room->session)),
        .token = reply_span(row->element[2]),
        .deadline_ms = reply_number(row->element[3]),
        .now_ms = now_ms,
        .staged_id = reply_span(row->element[4]),
    };
    held->has_staged = held->staged_id.len > 0;
    return held->workspace.len > 0 && held->session.len > 0;
}

static void read_held(struct pending *pending, enum store_result result,
                      const struct redisReply *reply)
{
    store_held_cb *cb = (store_held_cb *)pending->cb;

    if (result == STORE_OK &&
        (!reply_is_array(reply, 2) || !reply_is_array(reply->element[1], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, 0, pending->arg);
        return;
    }
    const struct redisReply *rows = reply->element[1];
    struct held_room *rooms = calloc(rows->elements + 1, sizeof(*rooms));
    struct held_session *held = calloc(rows->elements + 1, sizeof(*held));
    size_t count = 0;

    if (!rooms || !held) {
        cb(STORE_FULL, NULL, 0, pending->arg);
    } else {
        for (size_t i = 0; i < rows->elements; i++) {
            if (read_row(rows->element[i], reply_number(reply->element[0]), &rooms[count],
                         &held[count])) {
                count++;
            }
        }
        cb(STORE_OK, held, count, pending->arg);
    }
    free(rooms);
    free(held);
}

void store_held(struct store *store, uint32_t partition, struct span prefix, store_held_cb *cb,
                void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_HELD, partition);
    call_key(&call, "outboxlive", partition, (struct span){0}, (struct span){0});
    call_span(&call, prefix);
    call_send(&call, read_held, (void (*)(void))cb, arg);
}

/* A token is whatever stands in the lock: also longer than any of ours. */
static void append_encoded(struct buf *list, struct span raw)
{
    char encoded[64 * 3 + 1];

    while (raw.len > 0) {
        const size_t part = raw.len < 64 ? raw.len : 64;
        const int64_t len = percent_encode(raw.ptr, part, encoded, sizeof(encoded));

        (void)buf_append(list, encoded, len > 0 ? (size_t)len : 0);
        raw.ptr += part;
        raw.len -= part;
    }
    (void)buf_append(list, " ", 1);
}

int store_recover_list(struct buf *list, struct span workspace, struct span session,
                       struct span token)
{
    append_encoded(list, workspace);
    append_encoded(list, session);
    append_encoded(list, token);
    return list->failed ? -ENOMEM : 0;
}

static void read_recover(struct pending *pending, enum store_result result,
                         const struct redisReply *reply)
{
    store_flags_cb *cb = (store_flags_cb *)pending->cb;
    const struct span flags = result == STORE_OK ? reply_span(reply) : (struct span){NULL, 0};

    cb(result, flags, pending->arg);
}

void store_recover(struct store *store, uint32_t partition, struct span list, store_flags_cb *cb,
                   void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_RECOVER, partition);
    call_key(&call, "outboxlive", partition, (struct span){0}, (struct span){0});
    call_span(&call, list);
    call_send(&call, read_recover, (void (*)(void))cb, arg);
}

static void read_audit(struct pending *pending, enum store_result result,
                       const struct redisReply *reply)
{
    store_audit_cb *cb = (store_audit_cb *)pending->cb;
    struct audit_answer answer = {0};

    if (result == STORE_OK && !reply_is_array(reply, 3)) {
        result = STORE_PROTOCOL;
    }
    if (result == STORE_OK) {
        answer.next = reply_number(reply->element[1]);
        answer.mended = (uint32_t)reply_number(reply->element[2]);
    }
    cb(result, &answer, pending->arg);
}

void store_audit(struct store *store, uint32_t partition, int64_t from, uint32_t limit,
                 store_audit_cb *cb, void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_AUDIT, partition);
    call_key(&call, "outboxopen", partition, (struct span){0}, (struct span){0});
    call_number(&call, from);
    call_number(&call, limit);
    call_number(&call, store->lock_ttl_ms);
    call_send(&call, read_audit, (void (*)(void))cb, arg);
}
