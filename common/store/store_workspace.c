/* Pause, target, and what workspaces there are. */
#include "common/store/store_workspace.h"

#include <stdlib.h>

#include "common/store/store_claim_reply.h"
#include "common/store/store_internal.h"

#define PAGE_MAX      500
#define SESSIONS_READ 500 /* at about so many sessions the store is asked to stop */

static void call_workspace(struct call *call, struct store *store, enum script_id script,
                           const char *what, struct span workspace)
{
    const uint32_t p = partition_of(workspace.ptr, workspace.len);

    call_init(call, store, script, p);
    call_key(call, what, p, workspace, (struct span){0});
    call_encoded(call, workspace);
}

static void read_number(struct pending *pending, enum store_result result,
                        const struct redisReply *reply)
{
    store_number_cb *cb = (store_number_cb *)pending->cb;

    cb(result, result == STORE_OK ? reply_number(reply) : 0, pending->arg);
}

void store_sweep_waiting(struct store *store, struct span workspace, int64_t at_ms,
                         store_number_cb *cb, void *arg)
{
    const uint32_t p = partition_of(workspace.ptr, workspace.len);
    struct call call;

    call_init(&call, store, SCRIPT_SWEEP_WAITING, p);
    call_key(&call, "outboxerr", p, (struct span){0}, (struct span){0});
    call_encoded(&call, workspace);
    call_number(&call, at_ms);
    call_send(&call, read_number, (void (*)(void))cb, arg);
}

static void read_yes(struct pending *pending, enum store_result result,
                     const struct redisReply *reply)
{
    store_flag_cb *cb = (store_flag_cb *)pending->cb;

    cb(result, result == STORE_OK && reply_number(reply) != 0, pending->arg);
}

void store_pause(struct store *store, struct span workspace, bool is_paused, store_flag_cb *cb,
                 void *arg)
{
    struct call call;

    call_workspace(&call, store, SCRIPT_PAUSE, "outboxconf", workspace);
    call_str(&call, is_paused ? "pause" : "resume");
    call.is_durable = true;
    call_send(&call, read_yes, (void (*)(void))cb, arg);
}

void store_set_target(struct store *store, struct span workspace, struct span target,
                      store_flag_cb *cb, void *arg)
{
    struct call call;

    call_workspace(&call, store, SCRIPT_TARGET, "outboxconf", workspace);
    call_span(&call, target);
    call.is_durable = true;
    call_send(&call, read_yes, (void (*)(void))cb, arg);
}

/* ---- what there is ---- */

struct row_room {
    char name[WORKSPACE_MAX + 1];
};

static bool read_row(const struct redisReply *row, struct row_room *room,
                     struct workspace_state *ret)
{
    if (!reply_is_array(row, 6)) {
        return false;
    }
    *ret = (struct workspace_state){
        .name = read_name(reply_span(row->element[0]), room->name, sizeof(room->name)),
        .is_paused = reply_number(row->element[1]) != 0,
        .sessions = (uint64_t)reply_number(row->element[2]),
        .oldest_open_ms = reply_number(row->element[3]),
        .target = reply_span(row->element[4]),
    };
    reply_counts(row->element[5], ret->by_status);
    return ret->name.len > 0;
}

static void read_workspaces(struct pending *pending, enum store_result result,
                            const struct redisReply *reply)
{
    store_workspaces_cb *cb = (store_workspaces_cb *)pending->cb;
    struct workspaces_answer answer = {0};

    if (result == STORE_OK &&
        (!reply_is_array(reply, 2) || !reply_is_array(reply->element[1], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    const struct redisReply *rows = reply->element[1];
    struct workspace_state *states = calloc(rows->elements + 1, sizeof(*states));
    struct row_room *rooms = calloc(rows->elements + 1, sizeof(*rooms));

    if (!states || !rooms) {
        cb(STORE_FULL, NULL, pending->arg);
    } else {
        for (size_t i = 0; i < rows->elements; i++) {
            answer.count += read_row(rows->element[i], &rooms[answer.count], &states[answer.count]);
        }
        answer.workspaces = states;
        answer.now_ms = reply_number(reply->element[0]);
        cb(STORE_OK, &answer, pending->arg);
    }
    free(states);
    free(rooms);
}

static void call_workspaces(struct store *store, uint32_t partition, struct span after,
                            uint32_t limit, struct span one, struct span prefix,
                            store_workspaces_cb *cb, void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_WORKSPACES, partition);
    call_key(&call, "outboxnames", partition, (struct span){0}, (struct span){0});
    call_encoded(&call, after);
    call_number(&call, limit);
    call_encoded(&call, one);
    call_encoded(&call, prefix);
    call_send(&call, read_workspaces, (void (*)(void))cb, arg);
}

void store_workspaces(struct store *store, uint32_t partition, struct span prefix,
                      struct span after, uint32_t limit, store_workspaces_cb *cb, void *arg)
{
    call_workspaces(store, partition, after, limit < PAGE_MAX ? limit : PAGE_MAX, (struct span){0},
                    prefix, cb, arg);
}

void store_workspace(struct store *store, struct span workspace, store_workspaces_cb *cb, void *arg)
{
    call_workspaces(store, partition_of(workspace.ptr, workspace.len), (struct span){0}, 1,
                    workspace, (struct span){0}, cb, arg);
}

/* ---- its sessions ---- */

static void read_sessions(struct pending *pending, enum store_result result,
                          const struct redisReply *reply)
{
    store_sessions_cb *cb = (store_sessions_cb *)pending->cb;
    struct sessions_answer answer = {0};

    if (result == STORE_OK &&
        (!reply_is_array(reply, 3) || !reply_is_array(reply->element[2], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    const struct redisReply *names = reply->element[2];
    struct span *sessions = calloc(names->elements + 1, sizeof(*sessions));
    char(*rooms)[SESSION_MAX + 1] = calloc(names->elements + 1, sizeof(*rooms));

    if (!sessions || !rooms) {
        cb(STORE_FULL, NULL, pending->arg);
    } else {
        for (size_t i = 0; i < names->elements; i++) {
            sessions[answer.count] = read_name(reply_span(names->element[i]), rooms[answer.count],
                                               sizeof(rooms[answer.count]));
            answer.count += sessions[answer.count].len > 0; /* garbage has no name */
        }
        answer.sessions = sessions;
        answer.next = reply_span(reply->element[1]);
        if (span_equal(answer.next, span_of("0"))) {
            answer.next.len = 0;
        }
        cb(STORE_OK, &answer, pending->arg);
    }
    free(sessions);
    free(rooms);
}

void store_sessions(struct store *store, struct span workspace, struct span cursor,
                    store_sessions_cb *cb, void *arg)
{
    const uint32_t p = partition_of(workspace.ptr, workspace.len);
    struct call call;

    call_init(&call, store, SCRIPT_SESSIONS, p);
    call_key(&call, "outboxws", p, workspace, (struct span){0});
    call_span(&call, cursor.len > 0 ? cursor : span_of("0"));
    call_number(&call, SESSIONS_READ);
    call_send(&call, read_sessions, (void (*)(void))cb, arg);
}
