/* The three event routes: what a request asks for, and Server-Sent Events as its answer. */
#include "api/api.h"
#include "api/event_hub.h"
#include "api/event_reader.h"
#include "api/request.h"

#define CONTENT_TYPE "text/event-stream"

static int64_t on_read(void *arg, char *out, size_t max)
{
    return event_reader_read(arg, out, max);
}

static void on_done(void *arg, bool is_cut)
{
    struct event_reader *reader = arg;

    event_reader_ends(reader, is_cut);
    event_reader_destroy(&reader);
}

static void on_wake(void *arg)
{
    request_stream_wake(arg);
}

static void on_cut(void *arg)
{
    request_stream_cut(arg);
}

static void on_joined(enum store_result result, void *arg)
{
    struct request *request = arg;

    if (result != STORE_OK) {
        if (api_of(request)->has_successor) {
            /* A stream that ends: whoever reads it connects again, to the successor. */
            request_answer(request, 200, CONTENT_TYPE, span_of("retry: 200\n\n"));
        } else if (api_of(request)->is_draining) {
            request_problem(request, PROBLEM_NOT_READY, span_of("it is stopping"));
        } else {
            request_store_failed(request, result);
        }
        return;
    }
    request_answer_stream(request, 200, CONTENT_TYPE);
    request_answer_header(request, "X-Accel-Buffering", "no"); /* nginx would hold events back */
}

void handle_events(struct api *api, struct request *request)
{
    struct span last = request_header(request, "Last-Event-ID");

    if (last.len == 0) {
        last = request_query(request, "lastEventID"); /* clients that can't set headers */
    }
    const struct event_reader_options options = {
        .workspace = request->params.workspace,
        .session = request->params.session,
        .last_event_id = last,
        .caller = request->caller,
        .joined = on_joined,
        .wake = on_wake,
        .cut = on_cut,
        .arg = request,
    };
    struct event_reader *reader = event_reader_create(api->events, &options);

    if (!reader) {
        request_problem(request, PROBLEM_INTERNAL, (struct span){0});
        return;
    }
    request->stream = (struct request_stream){.read = on_read, .done = on_done, .arg = reader};
    event_reader_join(reader);
}
