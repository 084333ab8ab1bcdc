/* POST /v1/batch: many messages, a line each, one answer line each, in order. The body comes in
 * whole; then windows of some lines (batch_window.h) go to the store, one after the other, with at
 * most CALLS_AT_ONCE calls in flight. Answers are handed over when all lines have theirs; whoever
 * goes away before has what was accepted until the next window. Contract §7. */
#include <stdlib.h>
#include <uv.h>

#include "api/accept_outcome.h"
#include "api/api.h"
#include "api/batch_window.h"
#include "api/request.h"
#include "common/base/settings.h"

#define NDJSON_TYPE   "application/x-ndjson"
#define CALLS_AT_ONCE 8

struct batch {
    struct api *api;
    struct request *request;
    uv_idle_t next; /* no turn of the loop works on more than one window */
    uint32_t sent, in_flight;
    struct batch_window window;
};

/* Calls are told apart by their place in the window. */
struct batch_sent {
    struct batch *batch;
    const struct batch_call *call;
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void finish(struct batch *batch)
{
    struct request *request = batch->request;
    const char *durability = batch->api->durability;

    batch_window_done(&batch->window);
    uv_close((uv_handle_t *)&batch->next, on_closed);
    request_answer_out(request, 200, NDJSON_TYPE);
    request_answer_header(request, "Outbox-Durability", durability);
}

static void on_next(uv_idle_t *next);

static void end_window(struct batch *batch)
{
    batch_window_write(&batch->window, &batch->request->out);
    (void)uv_idle_start(&batch->next, on_next);
}

static void send_calls(struct batch *batch);

static void on_answer(enum store_result result, const struct accept_many_item *items, size_t count,
                      void *arg)
{
    const struct batch_sent sent = *(struct batch_sent *)arg;
    struct batch *batch = sent.batch;

    free(arg);
    batch->in_flight--;
    batch_window_answered(&batch->window, sent.call, result, items, count);
    send_calls(batch);
    if (batch->in_flight == 0) {
        end_window(batch);
    }
}

static void send_calls(struct batch *batch)
{
    struct batch_window *window = &batch->window;

    while (batch->sent < window->call_count && batch->in_flight < CALLS_AT_ONCE &&
           window->stopped == PROBLEM_NONE) {
        struct batch_call *call = &window->calls[batch->sent];
        struct batch_sent *sent = malloc(sizeof(*sent));

        if (!sent) {
            abort(); /* a small fixed object: restart and recovery are the tested path */
        }
        *sent = (struct batch_sent){batch, call};
        batch->sent++;
        batch->in_flight++;
        accept_many_send(&call->many, on_answer, sent);
    }
}

static void on_next(uv_idle_t *next)
{
    struct batch *batch = next->data;

    (void)uv_idle_stop(next);
    for (uint32_t i = batch->sent; i < batch->window.call_count; i++) {
        accept_many_destroy(&batch->window.calls[i].many); /* after a stop */
    }
    batch->sent = 0;
    if (!batch_window_read(&batch->window)) {
        finish(batch);
        return;
    }
    send_calls(batch);
    if (batch->in_flight == 0) {
        end_window(batch);
    }
}

static enum problem_id judge(struct api *api, const struct request *request,
                             struct span *ret_detail)
{
    const struct span body = {request->body.bytes, request->body.len};

    if (request_header(request, "Idempotency-Key").ptr) {
        *ret_detail = span_of("Idempotency-Key names one message: give every line of a batch its "
                              "clientMessageID.");
        return PROBLEM_INVALID_HEADER;
    }
    if (body.len == 0) {
        return PROBLEM_BODY_MISSING;
    }
    return batch_lines_count(body, api->settings->batch_max_lines) > api->settings->batch_max_lines
               ? PROBLEM_BATCH_TOO_LARGE
               : PROBLEM_NONE;
}

void handle_batch(struct api *api, struct request *request)
{
    struct span detail = {0};
    const enum problem_id problem = judge(api, request, &detail);

    if (problem != PROBLEM_NONE) {
        request_problem(request, problem, detail);
        return;
    }
    struct batch *batch = malloc(sizeof(*batch));

    if (!batch) {
        request_problem(request, PROBLEM_INTERNAL, (struct span){0});
        return;
    }
    batch->api = api;
    batch->request = request;
    batch->sent = batch->in_flight = 0;
    batch_window_init(&batch->window, api, request);
    buf_reset(&request->out);
    (void)uv_idle_init(api->loop, &batch->next);
    batch->next.data = batch;
    (void)uv_idle_start(&batch->next, on_next);
}
