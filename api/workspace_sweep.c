/* POST …/sweep: has the failed entries of a workspace looked at again. `unverifiable` is done by
 * the store alone; `parked-errors` by the workers: they are told, and waited for, for a while.
 * Contract §3 "Sweeps", §5. */
#include <stdlib.h>
#include <uv.h>

#include "api/api.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/workspace_form.h"
#include "common/base/clock.h"
#include "common/store/store_workspace.h"

#define JSON_TYPE     "application/json"
#define LOOK_EVERY_MS 100
#define WAIT_MAX_MS   15000
/* A worker takes entries first and settles them when their target has answered: so long must
 * nothing more have been settled once all are taken. */
#define QUIET_MS      1000

struct sweep {
    struct request *request;
    uv_timer_t timer; /* between two looks */
    int64_t at_ms;    /* the store's clock when it began: what it is known by */
    int64_t deadline_ms;
    uint64_t marked;  /* entries that the workers were told of */
    uint64_t waiting; /* of these: no worker has taken them yet */
    uint64_t failed;  /* still failed at the last count */
    int64_t quiet_since_ms;
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Before the answer: the request may be gone right after it. */
static struct request *end(struct sweep *sweep)
{
    struct request *request = sweep->request;

    uv_close((uv_handle_t *)&sweep->timer, on_closed);
    return request;
}

static void answer(struct request *request, uint64_t recovered, uint64_t stayed, uint64_t waiting)
{
    json_open(&request->out, '{');
    json_member_i64(&request->out, "recovered", (int64_t)recovered);
    json_member_i64(&request->out, "stayed", (int64_t)stayed);
    json_member_i64(&request->out, "waiting", (int64_t)waiting);
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

static void on_look(uv_timer_t *timer);

static void on_counted(enum store_result result, const struct walk_answer *walk, void *arg)
{
    struct sweep *sweep = arg;
    const int64_t now_ms = clock_mono_ms();

    if (result != STORE_OK) {
        request_store_failed(end(sweep), result);
        return;
    }
    const uint64_t failed = walk->count < sweep->marked ? walk->count : sweep->marked;
    const uint64_t waiting = sweep->waiting < failed ? sweep->waiting : failed;

    if (failed != sweep->failed || waiting > 0) {
        sweep->failed = failed;
        sweep->quiet_since_ms = now_ms;
    }
    if (failed > 0 && now_ms < sweep->deadline_ms && now_ms - sweep->quiet_since_ms < QUIET_MS) {
        uv_timer_start(&sweep->timer, on_look, LOOK_EVERY_MS, 0);
        return;
    }
    const uint64_t marked = sweep->marked;

    answer(end(sweep), marked - failed, failed - waiting, waiting);
}

static void on_waiting(enum store_result result, int64_t waiting, void *arg)
{
    struct sweep *sweep = arg;

    if (result != STORE_OK) {
        request_store_failed(end(sweep), result);
        return;
    }
    sweep->waiting = (uint64_t)waiting;
    if (waiting > 0 && clock_mono_ms() < sweep->deadline_ms) {
        sweep->quiet_since_ms = clock_mono_ms();
        uv_timer_start(&sweep->timer, on_look, LOOK_EVERY_MS, 0);
        return;
    }
    const struct walk_request walk = {
        .kind = WALK_STILL_FAILED,
        .workspace = sweep->request->params.workspace,
        .at_ms = sweep->at_ms,
    };

    store_walk(api_of(sweep->request)->store, &walk, on_counted, sweep);
}

static void on_look(uv_timer_t *timer)
{
    struct sweep *sweep = timer->data;

    store_sweep_waiting(api_of(sweep->request)->store, sweep->request->params.workspace,
                        sweep->at_ms, on_waiting, sweep);
}

static void on_marked(enum store_result result, const struct walk_answer *walk, void *arg)
{
    struct sweep *sweep = arg;
    struct api *api = api_of(sweep->request);

    if (result != STORE_OK) {
        request_store_failed(end(sweep), result);
        return;
    }
    if (walk->count == 0) {
        answer(end(sweep), 0, 0, 0);
        return;
    }
    sweep->marked = walk->count;
    sweep->at_ms = walk->at_ms;
    sweep->failed = walk->count;
    sweep->quiet_since_ms = clock_mono_ms();
    sweep->deadline_ms = sweep->quiet_since_ms + WAIT_MAX_MS;
    hints_send(&api->hints, sweep->request->params.workspace, (struct span){0});
    uv_timer_start(&sweep->timer, on_look, LOOK_EVERY_MS, 0);
}

static void sweep_parked_errors(struct api *api, struct request *request)
{
    const struct walk_request walk = {.kind = WALK_PARKED_ERRORS,
                                      .workspace = request->params.workspace};
    struct sweep *sweep = calloc(1, sizeof(*sweep));

    if (!sweep) {
        request_problem(request, PROBLEM_INTERNAL, (struct span){0});
        return;
    }
    sweep->request = request;
    uv_timer_init(api->loop, &sweep->timer);
    sweep->timer.data = sweep;
    store_walk(api->store, &walk, on_marked, sweep);
}

static void on_rearmed(enum store_result result, const struct walk_answer *walk, void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    hints_send(&api_of(request)->hints, request->params.workspace, (struct span){0});
    json_open(&request->out, '{');
    json_member_i64(&request->out, "recovered", (int64_t)walk->count);
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

static void sweep_unverifiable(struct api *api, struct request *request)
{
    const struct walk_request walk = {.kind = WALK_UNVERIFIABLE,
                                      .workspace = request->params.workspace};

    store_walk(api->store, &walk, on_rearmed, request);
}

static void (*const sweeps[SWEEP_WHAT_COUNT])(struct api *api, struct request *request) = {
    [SWEEP_WHAT_UNVERIFIABLE] = sweep_unverifiable,
    [SWEEP_WHAT_PARKED_ERRORS] = sweep_parked_errors,
};

void handle_sweep(struct api *api, struct request *request)
{
    enum sweep_what what;
    struct json_body body;
    const enum problem_id problem =
        sweep_form_read((struct span){request->body.bytes, request->body.len}, &body, &what);

    if (problem == PROBLEM_NONE) {
        sweeps[what](api, request);
    } else {
        request_problem(request, problem, span_of(body.detail));
    }
    json_body_done(&body);
}
