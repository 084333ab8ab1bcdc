/* One call for each partition and window: since the next window waits for all of them, messages of
 * one session reach the store in order, and what is in flight is bounded. */
#include "api/batch_window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/accept_lane.h"
#include "api/accept_outcome.h"
#include "api/api.h"
#include "api/head.h"
#include "api/json_out.h"
#include "api/limits.h"
#include "api/request.h"
#include "common/base/settings.h"

void batch_window_init(struct batch_window *window, struct api *api, const struct request *request)
{
    window->api = api;
    window->request = request;
    window->lines.rest = (struct span){request->body.bytes, request->body.len};
    window->traceparent = request_traceparent(request);
    window->blocked = (struct batch_blocked){0};
    window->stopped = PROBLEM_NONE;
    window->line_count = window->call_count = 0;
}

void batch_window_done(struct batch_window *window)
{
    for (uint32_t i = 0; i < window->call_count; i++) {
        accept_many_destroy(&window->calls[i].many);
    }
    free(window->blocked.all);
}

/* ---- what holds up what ---- */

static bool may_be_repeated(enum problem_id problem)
{
    const unsigned status = problem_get(problem)->status;

    return problem != PROBLEM_NONE && (status == 429 || status >= 500);
}

static uint64_t session_hash(struct span workspace, struct span session)
{
    return fnv1a64(workspace.ptr, workspace.len) * 0x9e3779b97f4a7c15u ^
           fnv1a64(session.ptr, session.len);
}

/* PROBLEM_NONE: nothing holds this session up. */
static enum problem_id blocked_by(const struct batch_blocked *blocked, uint64_t hash)
{
    for (size_t i = 0; i < blocked->count; i++) {
        if (blocked->all[i].hash == hash) {
            return blocked->all[i].problem;
        }
    }
    return PROBLEM_NONE;
}

static void stop(struct batch_window *window, enum problem_id problem, struct span detail)
{
    if (window->stopped == PROBLEM_NONE) {
        window->stopped = problem;
        (void)span_text(detail, window->stopped_detail, sizeof(window->stopped_detail));
    }
}

static void block(struct batch_window *window, const struct batch_line *line)
{
    struct batch_blocked *blocked = &window->blocked;
    const uint64_t hash = session_hash((struct span){line->workspace, line->workspace_len},
                                       (struct span){line->session, line->session_len});

    if (blocked_by(blocked, hash) != PROBLEM_NONE) {
        return;
    }
    if (blocked->count == blocked->cap) {
        const size_t cap = blocked->cap ? blocked->cap * 2 : 16;
        struct batch_blocked_session *all = realloc(blocked->all, cap * sizeof(*all));

        if (!all) {
            stop(window, PROBLEM_INTERNAL, (struct span){0});
            return;
        }
        blocked->all = all;
        blocked->cap = cap;
    }
    blocked->all[blocked->count++] = (struct batch_blocked_session){hash, line->problem};
}

/* ---- reading ---- */

static enum label_accept_result label_of(enum problem_id problem)
{
    return problem == PROBLEM_SESSION_FULL       ? LABEL_ACCEPT_RESULT_SESSION_FULL
           : problem_get(problem)->status == 503 ? LABEL_ACCEPT_RESULT_STORE_UNAVAILABLE
                                                 : accept_label_of_problem(problem);
}

static void refuse(struct batch_window *window, struct batch_line *line, enum problem_id problem,
                   struct span detail)
{
    line->problem = problem;
    line->label = label_of(problem);
    (void)span_text(detail, line->detail, sizeof(line->detail));
    if (problem == PROBLEM_INTERNAL) { /* out of memory: not even its session may be known */
        stop(window, problem, detail);
    }
}

/* Keeps what is needed when the store has answered. */
static void keep(struct batch_line *line, const struct accept_form *form, struct span session)
{
    const struct span ws = form->workspace, cmid = form->body.client_message_id;

    memcpy(line->workspace, ws.ptr, ws.len);
    line->workspace_len = (uint32_t)ws.len;
    memcpy(line->session, session.ptr, session.len);
    line->session_len = (uint32_t)session.len;
    memcpy(line->cmid, cmid.ptr ? cmid.ptr : "", cmid.len);
    line->cmid_len = (uint32_t)cmid.len;
}

static struct batch_call *call_at(struct batch_window *window, uint32_t partition)
{
    if (window->call_of[partition] == 0) {
        struct batch_call *call = &window->calls[window->call_count];

        call->many = accept_many_create(window->api->store, partition);
        if (!call->many) {
            return NULL;
        }
        call->partition = partition;
        call->count = 0;
        window->call_of[partition] = (uint8_t)++window->call_count;
    }
    return &window->calls[window->call_of[partition] - 1];
}

/* 0, -ENOSPC: the window ends before this line, or -ENOMEM. */
static int put_into_call(struct batch_window *window, struct batch_line *line,
                         const struct accept_form *form, const struct kind *kind,
                         struct span session)
{
    char flags[ENTRY_FLAGS_MAX];
    const size_t flags_len = entry_flags_of(kind, flags);
    struct batch_call *call =
        call_at(window, partition_of(form->workspace.ptr, form->workspace.len));

    line->id = entropy_entry_id(&window->api->entropy);
    const struct accept_request request = {
        .workspace = form->workspace,
        .session = session,
        .id = {line->id.text, ENTRY_ID_LEN},
        .digest = {form->digest, ACCEPT_DIGEST_LEN},
        .flags = {flags, flags_len},
        .body = &form->body,
        .session_cap = window->api->settings->session_cap,
    };
    const int err = call ? accept_many_add(call->many, &request) : -ENOMEM;

    if (err == 0) {
        call->lines[call->count++] = (uint16_t)(line - window->all);
        line->is_waiting = true;
    }
    return err;
}

/* A line that could be read. The same results as put_into_call. */
static int take_form(struct batch_window *window, struct batch_line *line, struct accept_form *form)
{
    const struct settings *settings = window->api->settings;
    const struct kind *kind = settings_kind(settings, form->body.kind.ptr, form->body.kind.len);
    struct span session = form->session;
    char room[SESSION_MAX];

    if (!request_may_see(window->request, form->workspace)) {
        refuse(window, line, PROBLEM_FORBIDDEN, (struct span){0});
        return 0;
    }
    if (!session.ptr && !accept_lane_find(kind, form->workspace, form, room, &session)) {
        refuse(window, line, PROBLEM_LANE_NOT_FILLED, span_of(form->json.detail));
        return 0;
    }
    keep(line, form, session);
    const enum problem_id blocked =
        blocked_by(&window->blocked, session_hash(form->workspace, session));

    if (blocked != PROBLEM_NONE) {
        refuse(window, line, blocked,
               span_of("An earlier line of its session could not be accepted now: repeat them in "
                       "their order."));
        return 0;
    }
    return put_into_call(window, line, form, kind, session);
}

/* 0, or -ENOSPC: not in this window. */
static int take_line(struct batch_window *window, struct span text, struct batch_line *line)
{
    const struct settings *settings = window->api->settings;
    const struct accept_source source = {
        .body = text,
        .traceparent = window->traceparent,
        .max_text_bytes = settings->max_text_bytes,
        .is_line = true,
    };
    struct accept_form form;
    int err = 0;

    line->problem = PROBLEM_NONE;
    line->is_waiting = line->is_duplicate = false;
    line->detail[0] = '\0';
    if (window->stopped != PROBLEM_NONE) {
        refuse(window, line, window->stopped, span_of(window->stopped_detail));
        return 0;
    }
    if (text.len > head_body_max(settings, ROUTE_ACCEPT)) {
        refuse(window, line, PROBLEM_TOO_LARGE, (struct span){0});
        return 0;
    }
    const enum problem_id problem = accept_form_read(&source, &form);

    if (problem == PROBLEM_NONE) {
        err = take_form(window, line, &form);
    } else {
        refuse(window, line, problem, span_of(form.json.detail));
    }
    if (err == -ENOMEM) {
        refuse(window, line, PROBLEM_INTERNAL, (struct span){0});
        err = 0;
    }
    accept_form_done(&form);
    return err;
}

bool batch_window_read(struct batch_window *window)
{
    const char *begin = window->lines.rest.ptr;
    struct batch_lines before = window->lines;
    struct span text;

    window->line_count = window->call_count = 0;
    memset(window->call_of, 0, sizeof(window->call_of));
    if (window->api->is_ending) {
        stop(window, PROBLEM_STORE_UNAVAILABLE, (struct span){0});
    }
    while (window->line_count < BATCH_WINDOW_LINES &&
           (size_t)(before.rest.ptr - begin) < BATCH_WINDOW_BYTES &&
           batch_lines_next(&window->lines, &text)) {
        if (take_line(window, text, &window->all[window->line_count]) < 0) {
            window->lines = before; /* it begins the next one */
            break;
        }
        before = window->lines;
        window->line_count++;
    }
    return window->line_count > 0;
}

/* ---- what came of it ---- */

static void take_answer(struct batch_window *window, struct batch_line *line,
                        const struct accept_answer *answer)
{
    line->problem = accept_problem_of(answer->result);
    line->is_duplicate = answer->result == ACCEPT_DUPLICATE;
    line->accepted_at_ms = answer->accepted_at_ms;
    (void)span_text(answer->entry_status, line->entry_status, sizeof(line->entry_status));
    if (answer->id.len > 0) {
        (void)span_text(answer->id, line->id.text, sizeof(line->id.text));
    }
    line->label = accept_label_of(answer->result);
    if (answer->result == ACCEPT_ACCEPTED) {
        accept_tell(window->api, (struct span){line->workspace, line->workspace_len},
                    (struct span){line->session, line->session_len}, span_of(line->id.text));
    }
}

static void take_failure(struct batch_window *window, struct batch_line *line,
                         enum store_result result)
{
    struct span detail;
    const enum problem_id problem = request_problem_of_store(result, &detail);

    refuse(window, line, problem, detail);
}

void batch_window_answered(struct batch_window *window, const struct batch_call *call,
                           enum store_result result, const struct accept_many_item *items,
                           size_t count)
{
    if (result == STORE_OK && count != call->count) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        struct span detail;
        const enum problem_id problem = request_problem_of_store(result, &detail);

        stop(window, problem, detail);
    }
    for (uint32_t i = 0; i < call->count; i++) {
        struct batch_line *line = &window->all[call->lines[i]];

        line->is_waiting = false;
        if (result != STORE_OK || items[i].result != STORE_OK) {
            take_failure(window, line, result != STORE_OK ? result : items[i].result);
        } else {
            take_answer(window, line, &items[i].answer);
        }
        if (may_be_repeated(line->problem)) {
            block(window, line);
        }
    }
}

static void write_line(const struct batch_line *line, struct buf *out)
{
    if (line->problem != PROBLEM_NONE) {
        problem_write(line->problem, span_of(line->detail), out);
        (void)buf_append_str(out, "\n");
        return;
    }
    json_open(out, '{');
    json_member_i64(out, "status", line->is_duplicate ? 200 : 202);
    json_member_text(out, "id", span_of(line->id.text));
    json_member_text(out, "clientMessageID", (struct span){line->cmid, line->cmid_len});
    if (line->is_duplicate) {
        json_member_text(out, "entryStatus", span_of(line->entry_status));
    }
    json_member_time(out, "acceptedAt", line->accepted_at_ms);
    json_close(out, '}');
    (void)buf_append_str(out, "\n");
}

void batch_window_write(struct batch_window *window, struct buf *out)
{
    for (uint32_t i = 0; i < window->line_count; i++) {
        struct batch_line *line = &window->all[i];

        if (line->is_waiting) { /* its call was not sent any more */
            refuse(window, line, window->stopped, span_of(window->stopped_detail));
        }
        metrics_add(window->api->metrics, METRIC_accepts_total, line->label, 1);
        limits_count_problem(window->api->metrics, line->problem);
        write_line(line, out);
    }
}
