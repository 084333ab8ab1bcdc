/* POST …/entries: reads the form, finds the session, hands it to the store, answers what came of
 * it. Contract §7. */
#include <string.h>

#include "api/accept_form.h"
#include "api/accept_lane.h"
#include "api/accept_outcome.h"
#include "api/api.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/server.h"
#include "common/base/clock.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"
#include "common/store/store.h"

#define JSON_TYPE "application/json"

static void count(const struct request *request, struct api *api, enum label_accept_result result)
{
    metrics_add(api->metrics, METRIC_accepts_total, result, 1);
    metrics_observe_ns(api->metrics, METRIC_accept_duration_seconds, 0,
                       clock_mono_ns() - request->complete_ns);
}

/* The session of the path, or the lane that the kind names. False: *form holds the detail. */
static bool find_session(struct request *request, const struct kind *kind, struct accept_form *form)
{
    if (request->route == ROUTE_ACCEPT) {
        request->session = request->params.session;
        return true;
    }
    return accept_lane_find(kind, request->params.workspace, form, request->lane,
                            &request->session);
}

/* ---- the answer ---- */

static void write_accepted(struct request *request, const struct accept_answer *answer)
{
    struct buf *out = &request->out;
    const bool is_duplicate = answer->result == ACCEPT_DUPLICATE;

    buf_reset(out);
    json_open(out, '{');
    json_member_text(out, "id", answer->id);
    json_member_text(out, "clientMessageID", (struct span){request->cmid, request->cmid_len});
    json_member_text(out, "status", span_of(is_duplicate ? "duplicate" : "pending"));
    if (is_duplicate) {
        json_member_text(out, "entryStatus", answer->entry_status);
    }
    json_member_time(out, "acceptedAt", answer->accepted_at_ms);
    json_close(out, '}');
}

static void add_location(struct request *request, struct span id)
{
    const struct span ws = request->params.workspace;
    char location[64 + WORKSPACE_MAX + ENTRY_ID_LEN];

    snprintf(location, sizeof(location), "/v1/workspaces/%.*s/entries/%.*s", (int)ws.len, ws.ptr,
             (int)id.len, id.ptr);
    request_answer_header(request, "Location", location);
}

static void on_accepted(enum store_result result, const struct accept_answer *answer, void *arg)
{
    struct request *request = arg;
    struct api *api = api_of(request);

    if (result != STORE_OK) {
        /* After a cut it may have been accepted: the repeat finds out, by its clientMessageID. */
        count(request, api, LABEL_ACCEPT_RESULT_STORE_UNAVAILABLE);
        request_store_failed(request, result);
        return;
    }
    const enum problem_id problem = accept_problem_of(answer->result);

    count(request, api, accept_label_of(answer->result));
    if (problem != PROBLEM_NONE) {
        request_problem(request, problem, (struct span){0});
        return;
    }
    if (answer->result == ACCEPT_ACCEPTED) {
        accept_tell(api, request->params.workspace, request->session, answer->id);
    }
    write_accepted(request, answer);
    request_answer_out(request, answer->result == ACCEPT_ACCEPTED ? 202 : 200, JSON_TYPE);
    if (answer->result == ACCEPT_DUPLICATE) {
        request_answer_header(request, "Idempotent-Replay", "true");
    }
    add_location(request, answer->id);
    request_answer_header(request, "Outbox-Durability", api->durability);
}

static void send_to_store(struct api *api, struct request *request, const struct kind *kind,
                          const struct accept_form *form)
{
    const struct entry_id id = entropy_entry_id(&api->entropy);
    const struct span cmid = form->body.client_message_id;
    char flags[ENTRY_FLAGS_MAX];
    const size_t len = entry_flags_of(kind, flags);
    const struct accept_request accept = {
        .workspace = request->params.workspace,
        .session = request->session,
        .id = {id.text, ENTRY_ID_LEN},
        .digest = {form->digest, ACCEPT_DIGEST_LEN},
        .flags = {flags, len},
        .body = &form->body,
        .session_cap = api->settings->session_cap,
    };

    memcpy(request->cmid, cmid.ptr ? cmid.ptr : "", cmid.len);
    request->cmid_len = (uint32_t)cmid.len;
    store_accept(api->store, &accept, on_accepted, request);
}

void handle_accept(struct api *api, struct request *request)
{
    const struct accept_source source = {
        .body = {request->body.bytes, request->body.len},
        .idempotency_key = request_header(request, "Idempotency-Key"),
        .traceparent = request_traceparent(request),
        .max_text_bytes = api->settings->max_text_bytes,
    };
    struct accept_form form;
    enum problem_id problem = accept_form_read(&source, &form);

    if (problem == PROBLEM_NONE) {
        const struct kind *kind =
            settings_kind(api->settings, form.body.kind.ptr, form.body.kind.len);

        if (find_session(request, kind, &form)) {
            send_to_store(api, request, kind, &form);
        } else {
            problem = PROBLEM_LANE_NOT_FILLED;
        }
    }
    if (problem != PROBLEM_NONE) {
        count(request, api, accept_label_of_problem(problem));
        request_problem(request, problem, span_of(form.json.detail));
    }
    accept_form_done(&form);
}
