/* POST …/entries: reads the form, finds the session, hands it to the store, answers what came of
 * it. Contract §7. */
#include <string.h>

#include "api/accept_form.h"
#include "api/api.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/server.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "common/core/payload_value.h"
#include "common/core/template.h"
#include "common/shm/metrics.h"
#include "common/store/store.h"

#define JSON_TYPE       "application/json"
#define TRACEPARENT_MAX 128
#define GLOBAL_LANE     "global"

static void count(const struct request *request, struct api *api, enum label_accept_result result)
{
    metrics_add(api->metrics, METRIC_accepts_total, result, 1);
    metrics_observe_ns(api->metrics, METRIC_accept_duration_seconds, 0,
                       clock_mono_ns() - request->complete_ns);
}

/* ---- the lane of a kind ---- */

struct lane_values {
    const struct request *request;
    const struct accept_form *form;
    char room[PAYLOAD_VALUE_ROOM];
};

static int lane_value(void *arg, struct span place, struct span *ret)
{
    static const char payload[] = "payload.";
    struct lane_values *values = arg;
    const struct entry_body *body = &values->form->body;

    if (span_equal(place, span_of("workspace"))) {
        *ret = values->request->params.workspace;
    } else if (span_equal(place, span_of("clientMessageID"))) {
        *ret = body->client_message_id;
    } else if (span_equal(place, span_of("userID"))) {
        *ret = body->user_id;
    } else if (place.len > sizeof(payload) - 1 &&
               memcmp(place.ptr, payload, sizeof(payload) - 1) == 0) {
        const struct span path = {place.ptr + sizeof(payload) - 1,
                                  place.len - (sizeof(payload) - 1)};

        return payload_value_text(payload_value(accept_form_payload(values->form), path),
                                  values->room, ret);
    } else {
        return -1;
    }
    return 0;
}

/* The session of the path, or the lane that the kind names. False: *form holds the detail. */
static bool find_session(struct request *request, const struct kind *kind, struct accept_form *form)
{
    struct lane_values values = {.request = request, .form = form};
    struct span place = {"", 0};
    struct buf lane;

    if (request->route == ROUTE_ACCEPT) {
        request->session = request->params.session;
        return true;
    }
    if (!kind || !kind->lane) {
        request->session = span_of(GLOBAL_LANE);
        return true;
    }
    buf_init(&lane, sizeof(request->lane));
    const bool is_filled = template_lane(kind->lane, lane_value, &values, &lane, &place) == 0;

    if (is_filled) {
        memcpy(request->lane, lane.bytes, lane.len);
        request->session = (struct span){request->lane, lane.len};
    } else {
        snprintf(form->json.detail, sizeof(form->json.detail), "no value for {%.*s}",
                 (int)place.len, place.ptr);
    }
    buf_done(&lane);
    return is_filled;
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

static void log_entry(const char *what, const struct request *request, struct span id)
{
    char text[3][SESSION_MAX + 1];

    if (log_wants(LOG_LEVEL_DEBUG)) {
        log_debug(what, "workspace", span_text(request->params.workspace, text[0], sizeof(text[0])),
                  "session", span_text(request->session, text[1], sizeof(text[1])), "entry",
                  span_text(id, text[2], sizeof(text[2])));
    }
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
    switch (answer->result) {
    case ACCEPT_ACCEPTED:
        hints_send(&api->hints, request->params.workspace, request->session);
        log_entry("entry accepted", request, answer->id);
        write_accepted(request, answer);
        count(request, api, LABEL_ACCEPT_RESULT_ACCEPTED);
        request_answer_out(request, 202, JSON_TYPE);
        add_location(request, answer->id);
        request_answer_header(request, "Outbox-Durability", api->durability);
        return;
    case ACCEPT_DUPLICATE:
        write_accepted(request, answer);
        count(request, api, LABEL_ACCEPT_RESULT_DUPLICATE);
        request_answer_out(request, 200, JSON_TYPE);
        request_answer_header(request, "Idempotent-Replay", "true");
        add_location(request, answer->id);
        request_answer_header(request, "Outbox-Durability", api->durability);
        return;
    case ACCEPT_KEY_REUSE:
        count(request, api, LABEL_ACCEPT_RESULT_KEY_REUSE);
        request_problem(request, PROBLEM_KEY_REUSE, (struct span){0});
        return;
    case ACCEPT_SESSION_FULL:
        count(request, api, LABEL_ACCEPT_RESULT_SESSION_FULL);
        request_problem(request, PROBLEM_SESSION_FULL, (struct span){0});
        return;
    }
    count(request, api, LABEL_ACCEPT_RESULT_OTHER);
    request_problem(request, PROBLEM_INTERNAL, (struct span){0});
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
    struct span trace = request_header(request, "traceparent");
    const struct accept_source source = {
        .body = {request->body.bytes, request->body.len},
        .idempotency_key = request_header(request, "Idempotency-Key"),
        .traceparent = trace.len <= TRACEPARENT_MAX ? trace : (struct span){0},
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
        count(request, api,
              problem == PROBLEM_TOO_LARGE ? LABEL_ACCEPT_RESULT_TOO_LARGE
                                           : LABEL_ACCEPT_RESULT_INVALID);
        request_problem(request, problem, span_of(form.json.detail));
    }
    accept_form_done(&form);
}
