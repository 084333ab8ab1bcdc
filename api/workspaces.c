/* What people do with a whole workspace, and what stands in it: park, unpark, pause, resume, clean
 * up, list. Contract §3 "Person's operations", §7. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/workspace_form.h"
#include "common/access/token_table.h"
#include "common/access/workspace_pattern.h"
#include "common/base/log.h"
#include "common/store/store_workspace.h"

#define JSON_TYPE     "application/json"
#define LIMIT_DEFAULT 100
#define LIMIT_MAX     500

/* What a person did to a whole workspace. */
static void log_workspace(const struct request *request, const char *what, uint64_t number)
{
    char workspace[WORKSPACE_MAX + 1];

    log_info("workspace changed by a person", "workspace",
             span_text(request->params.workspace, workspace, sizeof(workspace)), "what", what,
             "number", LOG_I64(number));
}

static void answer_number(struct request *request, const char *name, uint64_t number)
{
    log_workspace(request, name, number);
    json_open(&request->out, '{');
    json_member_i64(&request->out, name, (int64_t)number);
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

/* ---- park, unpark, clean up ---- */

static void on_parked(enum store_result result, const struct walk_answer *answer, void *arg)
{
    if (result != STORE_OK) {
        request_store_failed(arg, result);
        return;
    }
    answer_number(arg, "parked", answer->count);
}

void handle_park(struct api *api, struct request *request)
{
    struct walk_request walk = {.kind = WALK_PARK, .workspace = request->params.workspace};
    struct json_body body;
    const enum problem_id problem =
        park_form_read((struct span){request->body.bytes, request->body.len}, &body, &walk.reason);

    if (problem == PROBLEM_NONE) {
        store_walk(api->store, &walk, on_parked, request);
    } else {
        request_problem(request, problem, span_of(body.detail));
    }
    json_body_done(&body);
}

static void on_unparked(enum store_result result, const struct walk_answer *answer, void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    hints_send(&api_of(request)->hints, request->params.workspace, (struct span){0});
    answer_number(request, "unparked", answer->count);
}

void handle_unpark(struct api *api, struct request *request)
{
    const struct walk_request walk = {.kind = WALK_UNPARK, .workspace = request->params.workspace};

    store_walk(api->store, &walk, on_unparked, request);
}

static void on_cleaned_up(enum store_result result, const struct walk_answer *answer, void *arg)
{
    if (result != STORE_OK) {
        request_store_failed(arg, result);
        return;
    }
    answer_number(arg, "keysRemoved", answer->count);
}

void handle_cleanup(struct api *api, struct request *request)
{
    const struct walk_request walk = {.kind = WALK_CLEANUP, .workspace = request->params.workspace};

    store_walk(api->store, &walk, on_cleaned_up, request);
}

/* ---- pause and resume ---- */

static void on_pause(enum store_result result, bool yes, void *arg)
{
    struct request *request = arg;
    const bool is_paused = request->route == ROUTE_PAUSE;

    (void)yes;
    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    if (!is_paused) {
        hints_send(&api_of(request)->hints, request->params.workspace, (struct span){0});
    }
    log_workspace(request, is_paused ? "paused" : "resumed", 1);
    json_open(&request->out, '{');
    json_member_bool(&request->out, "paused", is_paused);
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

void handle_pause(struct api *api, struct request *request)
{
    store_pause(api->store, request->params.workspace, request->route == ROUTE_PAUSE, on_pause,
                request);
}

/* ---- list and get ---- */

static void write_workspace(const struct workspace_state *state, int64_t now_ms, struct buf *out)
{
    json_open(out, '{');
    json_member_text(out, "workspaceID", state->name);
    json_member_bool(out, "paused", state->is_paused);
    json_member_bool(out, "hasTarget", state->target.len > 0);
    json_member_i64(out, "sessions", (int64_t)state->sessions);
    json_open_member(out, "entries", '{');
    for (unsigned status = 0; status < STATUS_COUNT; status++) {
        json_member_i64(out, entry_status_name((enum entry_status)status),
                        (int64_t)state->by_status[status]);
    }
    json_close(out, '}');
    json_comma(out);
    if (state->oldest_open_ms > 0) {
        json_member_seconds(out, "oldestOpenAge", now_ms - state->oldest_open_ms);
    }
    json_close(out, '}');
}

static void on_workspace(enum store_result result, const struct workspaces_answer *answer,
                         void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    if (answer->count == 0) {
        request_problem(request, PROBLEM_WORKSPACE_NOT_FOUND, (struct span){0});
        return;
    }
    write_workspace(&answer->workspaces[0], answer->now_ms, &request->out);
    request_answer_out(request, 200, JSON_TYPE);
}

void handle_workspace(struct api *api, struct request *request)
{
    store_workspace(api->store, request->params.workspace, on_workspace, request);
}

/* Only what the caller may see. A page names its last workspace, from which the next one begins: it
 * is one of those that were told, so that no other name gets out. */
static void list_workspace(struct request *request, const struct workspace_state *state,
                           int64_t now_ms)
{
    if (!request_may_see(request, state->name)) {
        return;
    }
    write_workspace(state, now_ms, &request->out);
    json_comma(&request->out);
    memcpy(request->cmid, state->name.ptr, state->name.len); /* a workspace's name fits */
    request->cmid_len = (uint32_t)state->name.len;
    request->listed++;
}

static void on_workspaces(enum store_result result, const struct workspaces_answer *answer,
                          void *arg);

/* Where the caller may not see all, most may be passed over: then larger pages are asked for. */
static void ask(struct request *request, struct span after)
{
    const struct access_token *caller = request->caller;
    const struct span prefix =
        caller ? workspace_patterns_prefix(caller->workspaces) : (struct span){0};

    request->asked = caller ? LIMIT_MAX : request->limit - request->listed;
    store_workspaces(api_of(request)->store, request->offset, prefix, after, request->asked,
                     on_workspaces, request);
}

/* The rest of this partition, or the next one. False: there is no more. */
static bool ask_for_more(struct request *request, const struct workspaces_answer *answer)
{
    if (answer->count >= request->asked) {
        ask(request, answer->workspaces[answer->count - 1].name);
        return true;
    }
    if (request->offset + 1 >= PARTITION_COUNT) {
        return false;
    }
    request->offset++;
    ask(request, (struct span){0});
    return true;
}

/* Partition by partition until the page is full; `offset` is the partition, `listed` how many there
 * are. */
static void on_workspaces(enum store_result result, const struct workspaces_answer *answer,
                          void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    for (size_t i = 0; i < answer->count && request->listed < request->limit; i++) {
        list_workspace(request, &answer->workspaces[i], answer->now_ms);
    }
    if (request->listed < request->limit && ask_for_more(request, answer)) {
        return;
    }
    json_close(&request->out, ']');
    json_comma(&request->out);
    if (request->listed >= request->limit) {
        json_member_text(&request->out, "next", (struct span){request->cmid, request->cmid_len});
    }
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

static bool read_limit(struct span text, uint32_t *ret)
{
    uint32_t limit = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || i > 3) {
            return false;
        }
        limit = limit * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    *ret = limit;
    return limit >= 1 && limit <= LIMIT_MAX;
}

void handle_workspaces(struct api *api, struct request *request)
{
    const struct span limit = request_query(request, "limit");
    char room[WORKSPACE_MAX];
    struct span after = {0};

    (void)api;
    request->limit = LIMIT_DEFAULT;
    if (limit.ptr && !read_limit(limit, &request->limit)) {
        request_problem(request, PROBLEM_INVALID_QUERY, span_of("limit must be 1 to 500"));
        return;
    }
    if (!request_query_text(request, "after", room, sizeof(room), &after) ||
        (after.len > 0 && !workspace_name_is_valid(after.ptr, after.len))) {
        request_problem(request, PROBLEM_INVALID_QUERY, span_of("after must be a workspace"));
        return;
    }
    json_open(&request->out, '{');
    json_open_member(&request->out, "workspaces", '[');
    request->offset = after.len > 0 ? partition_of(after.ptr, after.len) : 0;
    ask(request, after);
}

/* ---- its sessions ---- */

static void on_sessions(enum store_result result, const struct sessions_answer *answer, void *arg)
{
    struct request *request = arg;
    struct buf *out = &request->out;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    json_open(out, '{');
    json_open_member(out, "sessions", '[');
    for (size_t i = 0; i < answer->count; i++) {
        json_open(out, '{');
        json_member_text(out, "sessionID", answer->sessions[i]);
        json_close(out, '}');
        json_comma(out);
    }
    json_close(out, ']');
    json_comma(out);
    json_member_text(out, "next", answer->next);
    json_close(out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

static bool is_cursor(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len < SESSIONS_CURSOR_MAX;
}

void handle_sessions(struct api *api, struct request *request)
{
    const struct span after = request_query(request, "after");

    if (!is_cursor(after)) {
        request_problem(request, PROBLEM_INVALID_QUERY,
                        span_of("after must be the `next` of the page before"));
        return;
    }
    store_sessions(api->store, request->params.workspace, after, on_sessions, request);
}
