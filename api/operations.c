/* What people do to an entry: retry, edit, remove, confirm. Contract §3, §6, §7. */
#include "api/api.h"
#include "api/edit_form.h"
#include "api/entry_json.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/server.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "common/store/store_operate.h"

#define JSON_TYPE "application/json"

/* ---- answers that are no yes ---- */

static enum problem_id problem_of(const struct operate_answer *answer,
                                  enum resolver_operation operation)
{
    switch (answer->result) {
    case OPERATE_DONE:
        break;
    case OPERATE_NOT_FOUND:
        return PROBLEM_ENTRY_NOT_FOUND;
    case OPERATE_ENDED:
        return operation == RESOLVER_EDIT && span_equal(answer->how, span_of("sent"))
                   ? PROBLEM_ALREADY_SENT
                   : PROBLEM_ENTRY_NOT_FOUND;
    case OPERATE_BUSY:
        return PROBLEM_BUSY;
    case OPERATE_NOT_FAILED:
        return PROBLEM_NOT_FAILED;
    case OPERATE_ALREADY_SENT:
        return PROBLEM_ALREADY_SENT;
    case OPERATE_BAD_PATCH:
        return PROBLEM_PATCH_DOES_NOT_FIT;
    case OPERATE_TOO_MANY:
        return PROBLEM_TOO_MANY_WAIT;
    case OPERATE_CONTENDED:
        return PROBLEM_CONTENDED;
    }
    return PROBLEM_INTERNAL;
}

static void log_operated(const struct request *request, const struct operate_answer *answer)
{
    char text[2][SESSION_MAX + 1];

    if (log_wants(LOG_LEVEL_DEBUG)) {
        log_debug("entry changed by a person", "workspace",
                  span_text(request->params.workspace, text[0], sizeof(text[0])), "entry",
                  span_text(answer->subject, text[1], sizeof(text[1])), "what",
                  resolver_what_name(answer->what));
    }
}

/* True: the answer was not "done", and has been given. */
static bool refused(struct request *request, enum store_result result,
                    const struct operate_answer *answer, enum resolver_operation operation)
{
    if (result != STORE_OK) {
        request_store_failed(request, result);
        return true;
    }
    if (answer->result != OPERATE_DONE) {
        request_problem(request, problem_of(answer, operation), (struct span){0});
        return true;
    }
    log_operated(request, answer);
    return false;
}

static void write_entry(struct request *request, const struct operate_answer *answer)
{
    const struct entry_context context = {.now_ms = answer->now_ms,
                                          .stuck_after_ms = api_of(request)->settings->stuck_after};

    entry_json_write(answer->entry, answer->subject, &context, &request->out);
}

/* Something may go now: a worker hears of it. */
static void hint(struct request *request, const struct operate_answer *answer)
{
    hints_send(&api_of(request)->hints, request->params.workspace,
               answer->entry ? answer->entry->session : (struct span){"", 0});
}

static void answer_what(struct request *request, const struct operate_answer *answer)
{
    json_open(&request->out, '{');
    json_member_text(&request->out, "id", answer->subject);
    json_member_text(&request->out, "result", span_of(resolver_what_name(answer->what)));
    if (answer->entry) {
        json_member_name(&request->out, "entry");
        write_entry(request, answer);
        json_comma(&request->out);
    }
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

static bool refuse_bad_id(struct request *request)
{
    if (request->params.id.len > 0 && request->params.id.len <= 64) {
        return false;
    }
    request_problem(request, PROBLEM_ENTRY_NOT_FOUND, (struct span){0});
    return true;
}

static void operate(struct api *api, struct request *request, enum resolver_operation operation,
                    const struct entry_patch *patch, store_operate_cb *cb)
{
    const struct entry_id fresh = entropy_entry_id(&api->entropy);
    struct operate_request operate = {
        .workspace = request->params.workspace,
        .id = request->params.id,
        .operation = operation,
        .new_id = {fresh.text, ENTRY_ID_LEN},
        .settings = api->settings,
    };

    if (patch) {
        operate.patch = *patch;
    }
    store_operate(api->store, &operate, cb, request);
}

/* ---- retry ---- */

static void on_retried(enum store_result result, const struct operate_answer *answer, void *arg)
{
    struct request *request = arg;

    if (refused(request, result, answer, RESOLVER_RETRY)) {
        return;
    }
    hint(request, answer);
    if (!answer->entry) { /* it has been sent again and has left since */
        answer_what(request, answer);
        return;
    }
    write_entry(request, answer);
    request_answer_out(request, 200, JSON_TYPE);
}

void handle_retry(struct api *api, struct request *request)
{
    if (!refuse_bad_id(request)) {
        operate(api, request, RESOLVER_RETRY, NULL, on_retried);
    }
}

/* ---- edit ---- */

static void on_edited(enum store_result result, const struct operate_answer *answer, void *arg)
{
    struct request *request = arg;

    if (!refused(request, result, answer, RESOLVER_EDIT)) {
        hint(request, answer);
        answer_what(request, answer);
    }
}

void handle_edit(struct api *api, struct request *request)
{
    struct edit_form form;
    enum problem_id problem;

    if (refuse_bad_id(request)) {
        return;
    }
    problem = edit_form_read((struct span){request->body.bytes, request->body.len},
                             api->settings->max_text_bytes, &form);
    if (problem == PROBLEM_NONE) {
        operate(api, request, RESOLVER_EDIT, &form.patch, on_edited);
    } else {
        request_problem(request, problem, span_of(form.body.detail));
    }
    edit_form_done(&form);
}

/* ---- remove ---- */

static void on_removed(enum store_result result, const struct operate_answer *answer, void *arg)
{
    struct request *request = arg;
    const bool was_gone = result == STORE_OK && answer->result == OPERATE_ENDED &&
                          (span_equal(answer->how, span_of("removed")) ||
                           span_equal(answer->how, span_of("discarded")));

    if (was_gone) { /* the same request again, or somebody was faster */
        json_open(&request->out, '{');
        json_member_text(&request->out, "id", request->params.id);
        json_member_text(&request->out, "result", answer->how);
        json_close(&request->out, '}');
        request_answer_out(request, 200, JSON_TYPE);
        return;
    }
    if (!refused(request, result, answer, RESOLVER_REMOVE)) {
        hint(request, answer);
        answer_what(request, answer);
    }
}

void handle_remove(struct api *api, struct request *request)
{
    if (!refuse_bad_id(request)) {
        operate(api, request, RESOLVER_REMOVE, NULL, on_removed);
    }
}

/* ---- confirm ---- */

static void on_confirmed(enum store_result result, const struct confirm_answer *answer, void *arg)
{
    char workspace[WORKSPACE_MAX + 1], session[SESSION_MAX + 1];
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    if (answer->is_new) {
        log_debug("entry confirmed by an echo", "workspace",
                  span_text(request->params.workspace, workspace, sizeof(workspace)), "session",
                  span_text(answer->session, session, sizeof(session)));
        hints_send(&api_of(request)->hints, request->params.workspace, answer->session);
    }
    json_open(&request->out, '{');
    json_member_bool(&request->out, "confirmed", answer->is_confirmed);
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

void handle_confirm(struct api *api, struct request *request)
{
    struct confirm_form form;
    const enum problem_id problem =
        confirm_form_read((struct span){request->body.bytes, request->body.len}, &form);

    if (problem == PROBLEM_NONE) {
        const struct confirm_request confirm = {
            .workspace = request->params.workspace,
            .id = form.entry_id,
            .session = form.session,
            .client_message_id = form.client_message_id,
            .result = {form.result.bytes, form.result.len},
            .wait_for_answer_ms = settings_longest_timeout_ms(api->settings),
        };

        store_confirm(api->store, &confirm, on_confirmed, request);
    } else {
        request_problem(request, problem, span_of(form.body.detail));
    }
    confirm_form_done(&form);
}
