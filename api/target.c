/* A workspace's own target: PUT, GET, DELETE. Contract §7, §11: credentials are never returned. How
 * its circuit stands is what the workers of this node know. */
#include <stdlib.h>

#include "api/api.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/target_form.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/shm/target_table.h"
#include "common/store/store_workspace.h"

#define JSON_TYPE "application/json"

static const char *circuit_of(const char *url, void *arg)
{
    const struct shm *shm = arg;

    return circuit_state_name(target_table_state(shm, target_table_key(shm, url), clock_mono_ns()));
}

static void answer_stored(struct request *request, struct span stored)
{
    if (!target_form_show(stored, circuit_of, api_of(request)->shm, &request->out)) {
        request_problem(request, PROBLEM_TARGET_NOT_FOUND, (struct span){0});
        return;
    }
    request_answer_out(request, 200, JSON_TYPE);
}

static void on_set(enum store_result result, bool yes, void *arg)
{
    struct request *request = arg;
    AUTO_FREE char *stored = request->context;

    (void)yes;
    request->context = NULL;
    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    answer_stored(request, span_of(stored));
}

void handle_target_set(struct api *api, struct request *request)
{
    struct json_body body;
    char *stored = NULL;
    const enum problem_id problem =
        target_form_read((struct span){request->body.bytes, request->body.len}, &body, &stored);

    if (problem == PROBLEM_NONE) {
        request->context = stored;
        store_set_target(api->store, request->params.workspace, span_of(stored), on_set, request);
    } else {
        request_problem(request, problem, span_of(body.detail));
    }
    json_body_done(&body);
}

static void on_get(enum store_result result, const struct workspaces_answer *answer, void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    answer_stored(request, answer->count > 0 ? answer->workspaces[0].target : (struct span){0});
}

void handle_target_get(struct api *api, struct request *request)
{
    store_workspace(api->store, request->params.workspace, on_get, request);
}

static void on_deleted(enum store_result result, bool had_one, void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    if (!had_one) {
        request_problem(request, PROBLEM_TARGET_NOT_FOUND, (struct span){0});
        return;
    }
    json_open(&request->out, '{');
    json_member_bool(&request->out, "deleted", true);
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

void handle_target_delete(struct api *api, struct request *request)
{
    store_set_target(api->store, request->params.workspace, (struct span){0}, on_deleted, request);
}
