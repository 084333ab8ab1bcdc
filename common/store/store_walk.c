/* Drives a walk: some sessions at a time by a cursor, and for these the operation's script, again
 * and again, until each is through. All state is here: a walk that is cut leaves nothing behind,
 * and one begun anew finds what is done. Contract §2. */
#include <stdlib.h>

#include "common/store/store_internal.h"
#include "common/store/store_workspace.h"

#define STEP_ENTRIES  500 /* contract §2 */
#define STEP_SESSIONS 128
#define SESSIONS_READ 100 /* at about so many sessions the store is asked to stop */
#define ID_ROOM       192

struct walk {
    struct store *store;
    enum walk_kind kind;
    uint32_t step_entries;
    char workspace[WORKSPACE_MAX];
    struct span ws;
    char *reason;
    struct span argument;
    char cursor[24];
    bool is_last_batch;
    char *names; /* the batch: encoded sessions, end to end */
    struct span *sessions;
    size_t session_count, session_at;
    char behind[ID_ROOM]; /* the entry behind which the session at session_at goes on */
    size_t behind_len;
    struct walk_answer answer;
    store_walk_cb *cb;
    void *arg;
};

static const struct {
    enum script_id script;
    const char *argument; /* NULL: the reason */
} kinds[] = {
    [WALK_PARK] = {SCRIPT_PARK, NULL},
    [WALK_UNPARK] = {SCRIPT_UNPARK, ""},
    [WALK_UNVERIFIABLE] = {SCRIPT_SWEEP, "unverifiable"},
    [WALK_PARKED_ERRORS] = {SCRIPT_SWEEP, "parked-errors"},
    [WALK_STILL_FAILED] = {SCRIPT_SWEEP, "still-failed"},
    [WALK_CLEANUP] = {SCRIPT_CLEANUP, ""},
};

static void drop_batch(struct walk *walk)
{
    free(walk->names);
    free(walk->sessions);
    walk->names = NULL;
    walk->sessions = NULL;
    walk->session_count = walk->session_at = 0;
}

static void end(struct walk *walk, enum store_result result)
{
    walk->cb(result, result == STORE_OK ? &walk->answer : NULL, walk->arg);
    drop_batch(walk);
    free(walk->reason);
    free(walk);
}

static void call_walk(struct walk *walk, struct call *call, enum script_id script, const char *what)
{
    const uint32_t p = partition_of(walk->workspace, walk->ws.len);

    call_init(call, walk->store, script, p);
    call_key(call, what, p, walk->ws, (struct span){0});
}

/* ---- the end of a cleanup ---- */

static void end_cleanup(struct walk *walk);

static void on_cleanup_end(struct pending *pending, enum store_result result,
                           const struct redisReply *reply)
{
    struct walk *walk = pending->arg;

    if (result == STORE_OK && !reply_is_array(reply, 2)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        end(walk, result);
        return;
    }
    walk->answer.count += (uint64_t)reply_number(reply->element[0]);
    if (reply_number(reply->element[1]) != 0) {
        end_cleanup(walk);
    } else {
        end(walk, STORE_OK);
    }
}

static void end_cleanup(struct walk *walk)
{
    struct call call;

    call_walk(walk, &call, SCRIPT_CLEANUP_END, "outboxended");
    call_encoded(&call, walk->ws);
    call_number(&call, walk->step_entries);
    call_send(&call, on_cleanup_end, NULL, walk);
}

/* ---- steps ---- */

static void read_sessions(struct walk *walk);
static void step(struct walk *walk);

static void on_step(struct pending *pending, enum store_result result,
                    const struct redisReply *reply)
{
    struct walk *walk = pending->arg;
    size_t completed = 0;
    struct span behind = {0};

    if (result == STORE_OK && !reply_is_array(reply, 4)) {
        result = STORE_PROTOCOL;
    }
    if (result == STORE_OK) {
        completed = (size_t)reply_number(reply->element[1]);
        behind = reply_span(reply->element[2]);
        if (completed > walk->session_count - walk->session_at ||
            behind.len > sizeof(walk->behind)) {
            result = STORE_PROTOCOL;
        }
    }
    if (result != STORE_OK) {
        end(walk, result);
        return;
    }
    walk->answer.count += (uint64_t)reply_number(reply->element[3]);
    walk->session_at += completed;
    memcpy(walk->behind, behind.ptr, behind.len);
    walk->behind_len = behind.len;
    step(walk);
}

static void step(struct walk *walk)
{
    struct call call;

    if (walk->session_at == walk->session_count) {
        drop_batch(walk);
        if (!walk->is_last_batch) {
            read_sessions(walk);
        } else if (walk->kind == WALK_CLEANUP) {
            end_cleanup(walk);
        } else {
            end(walk, STORE_OK);
        }
        return;
    }
    call_walk(walk, &call, kinds[walk->kind].script, "outboxws");
    call_encoded(&call, walk->ws);
    call_number(&call, walk->answer.at_ms);
    call_number(&call, walk->step_entries);
    call_span(&call, (struct span){walk->behind, walk->behind_len});
    call_span(&call, walk->argument);
    for (size_t i = walk->session_at;
         i < walk->session_count && i - walk->session_at < STEP_SESSIONS; i++) {
        call_span(&call, walk->sessions[i]);
    }
    call.is_durable = true;
    call_send(&call, on_step, NULL, walk);
}

/* ---- sessions ---- */

static bool keep_batch(struct walk *walk, const struct redisReply *names)
{
    size_t bytes = 1, used = 0;

    for (size_t i = 0; i < names->elements; i++) {
        bytes += reply_span(names->element[i]).len;
    }
    walk->names = malloc(bytes);
    walk->sessions = calloc(names->elements + 1, sizeof(*walk->sessions));
    if (!walk->names || !walk->sessions) {
        return false;
    }
    for (size_t i = 0; i < names->elements; i++) {
        const struct span name = reply_span(names->element[i]);

        memcpy(walk->names + used, name.ptr, name.len);
        walk->sessions[i] = (struct span){walk->names + used, name.len};
        used += name.len;
    }
    walk->session_count = names->elements;
    return true;
}

static void on_sessions(struct pending *pending, enum store_result result,
                        const struct redisReply *reply)
{
    struct walk *walk = pending->arg;

    if (result == STORE_OK && (!reply_is_array(reply, 3) || !reply_is_array(reply->element[2], 0) ||
                               reply_span(reply->element[1]).len >= sizeof(walk->cursor))) {
        result = STORE_PROTOCOL;
    } else if (result == STORE_OK && !keep_batch(walk, reply->element[2])) {
        result = STORE_FULL;
    }
    if (result != STORE_OK) {
        end(walk, result);
        return;
    }
    const struct span cursor = reply_span(reply->element[1]);

    memcpy(walk->cursor, cursor.ptr, cursor.len);
    walk->cursor[cursor.len] = '\0';
    walk->is_last_batch = strcmp(walk->cursor, "0") == 0 || cursor.len == 0;
    if (walk->answer.at_ms == 0) {
        walk->answer.at_ms = reply_number(reply->element[0]);
    }
    step(walk);
}

static void read_sessions(struct walk *walk)
{
    struct call call;

    call_walk(walk, &call, SCRIPT_SESSIONS, "outboxws");
    call_str(&call, walk->cursor);
    call_number(&call, SESSIONS_READ);
    call_send(&call, on_sessions, NULL, walk);
}

/* ---- the beginning ---- */

static void on_paused(struct pending *pending, enum store_result result,
                      const struct redisReply *reply)
{
    struct walk *walk = pending->arg;

    if (result != STORE_OK) {
        end(walk, result);
        return;
    }
    walk->answer.at_ms = reply_number(reply);
    read_sessions(walk);
}

static void begin_cleanup(struct walk *walk)
{
    struct call call;

    call_walk(walk, &call, SCRIPT_PAUSE, "outboxconf");
    call_encoded(&call, walk->ws);
    call_str(&call, "cleanup");
    call_send(&call, on_paused, NULL, walk);
}

void store_walk(struct store *store, const struct walk_request *request, store_walk_cb *cb,
                void *arg)
{
    struct walk *walk = calloc(1, sizeof(*walk));
    const char *argument = kinds[request->kind].argument;

    if (!walk || !(walk->reason = malloc(request->reason.len + 1))) {
        abort(); /* a small fixed object: restart and recovery are the tested path */
    }
    walk->store = store;
    walk->kind = request->kind;
    walk->step_entries = request->max_per_step > 0 ? request->max_per_step : STEP_ENTRIES;
    walk->ws.len = request->workspace.len < WORKSPACE_MAX ? request->workspace.len : WORKSPACE_MAX;
    memcpy(walk->workspace, request->workspace.ptr, walk->ws.len);
    walk->ws.ptr = walk->workspace;
    if (request->reason.len > 0) {
        memcpy(walk->reason, request->reason.ptr, request->reason.len);
    }
    walk->argument =
        argument ? span_of(argument) : (struct span){walk->reason, request->reason.len};
    memcpy(walk->cursor, "0", 2);
    walk->answer.at_ms = request->at_ms;
    walk->cb = cb;
    walk->arg = arg;
    if (walk->kind == WALK_CLEANUP) {
        begin_cleanup(walk);
    } else {
        read_sessions(walk);
    }
}
