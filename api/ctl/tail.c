/* `tail`: shows the events of a session, a workspace or everything as they happen. Every connection
 * but the first begins behind the last event shown. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/ctl/asking.h"
#include "api/ctl/event_line.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/run.h"
#include "api/ctl/sse.h"
#include "api/ctl/style.h"
#include "common/base/clock.h"

#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 5000
#define LINE_ROOM    ((size_t)8 << 20)

struct tail {
    struct asking asking;
    const struct options *options;
    struct sse sse;
    struct answer_view view;
    bool has_begun; /* something came on this connection */
    bool is_told;   /* that the connection was lost */
};

/* ---- what is shown ---- */

/* A type that --type does not name; what is missing is always told. */
static bool is_left_out(const struct options *options, const struct sse_event *event,
                        const json_t *data)
{
    struct span list = span_of(option_text(options, OPTION_TYPE)), one;

    if (!option_is_set(options, OPTION_TYPE) || span_equal(event->name, span_of("reset"))) {
        return false;
    }
    while (span_next_word(&list, ',', &one)) {
        if (span_equal(one, span_of(answer_text(data, "type")))) {
            return false;
        }
    }
    return true;
}

/* {"id":…,"event":…,"data":…}, a line each: what --last needs stands in it. */
static int write_json(const struct sse_event *event, json_t *data, struct buf *out)
{
    json_t *root = json_pack("{s:s%, s:s%, s:O}", "id", event->last_id.ptr, event->last_id.len,
                             "event", event->name.ptr, event->name.len, "data", data);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

    if (text) {
        (void)buf_append_str(out, text);
        (void)buf_append_str(out, "\n");
    }
    free(text);
    json_decref(root);
    return text ? 0 : -EINVAL;
}

static void show(const struct tail *tail, const struct sse_event *event, json_t *data)
{
    struct buf out;

    buf_init(&out, LINE_ROOM);
    if ((option_is_set(tail->options, OPTION_JSON)
             ? write_json(event, data, &out)
             : event_line_write(event->name, event->data, &tail->view, &out)) == 0) {
        (void)fwrite(out.bytes, 1, out.len, stdout);
        (void)fflush(stdout); /* a closed pipe ends us by its signal */
    }
    buf_done(&out);
}

static void on_event(const struct sse_event *event, void *arg)
{
    struct tail *tail = arg;

    if (tail->is_told) {
        fputs("outboxctl: connected again\n", stderr);
    }
    tail->has_begun = true;
    tail->is_told = false;
    if (span_equal(event->name, span_of("heartbeat"))) {
        return;
    }
    json_t *data = json_loadb(event->data.ptr, event->data.len, JSON_ALLOW_NUL, NULL);

    if (data && !is_left_out(tail->options, event, data)) {
        show(tail, event, data);
    }
    json_decref(data);
}

static bool on_bytes(struct span bytes, void *arg)
{
    struct tail *tail = arg;

    return sse_feed(&tail->sse, bytes) == 0;
}

/* ---- following ---- */

static int make_path(const struct options *options, struct call *call)
{
    if (options_argument(options, 1)) {
        return call_session(options, "GET", "/events", call);
    }
    if (options_argument(options, 0)) {
        return call_workspace(options, "GET", "/events", call);
    }
    (void)buf_append_str(&call->path, "/v1/events");
    return EXIT_CODE_OK;
}

static void pause_for(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL); /* cut short by a signal: one try earlier */
}

/* The server will have nothing of it, now or later. */
static bool is_final(const struct http_answer *answer)
{
    return answer->status >= 400 && answer->status < 500 && answer->status != 408 &&
           answer->status != 429;
}

static void tell_lost(struct tail *tail, int err)
{
    if (!tail->is_told) {
        fprintf(stderr, "outboxctl: the connection is lost (%s); trying again\n",
                err < 0 ? http_client_mistake(tail->asking.client) : "the server ended it");
        tail->is_told = true;
    }
}

static int follow(struct tail *tail, const char *path)
{
    long pause_ms = PAUSE_MIN_MS;

    for (bool is_first = true;; is_first = false) {
        struct http_answer answer;
        const char *last = tail->sse.last_id.len > 0 ? tail->sse.last_id.bytes : NULL;

        tail->has_begun = false;
        sse_restart(&tail->sse);
        http_client_set_limits(tail->asking.client, 0, 0);
        const int err =
            http_client_stream(tail->asking.client, path, last, on_bytes, tail, &answer);

        if (err == 0 && answer.status != 200 && (is_first || is_final(&answer))) {
            return asking_explain_refusal(&tail->asking, &answer);
        }
        if (err < 0 && is_first && !tail->has_begun) {
            return asking_explain_silence(&tail->asking);
        }
        tell_lost(tail, err);
        if (err == 0) {
            http_answer_done(&answer);
        }
        pause_ms = tail->has_begun ? PAUSE_MIN_MS : pause_ms * 2;
        pause_ms = pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS;
        pause_for(pause_ms);
    }
}

int command_tail(const struct options *options)
{
    const char *last = option_text(options, OPTION_LAST);
    struct tail tail = {
        .options = options,
        .view = {.now_ms = clock_wall_ms(), .is_coloured = style_is_wanted(options)},
    };
    struct call call;

    call_init(&call);
    int result = make_path(options, &call);

    if (result == EXIT_CODE_OK) {
        result = asking_open(&tail.asking, options);
    }
    if (result == EXIT_CODE_OK) {
        sse_init(&tail.sse, span_of(last ? last : ""), on_event, &tail);
        result = follow(&tail, call.path.bytes);
        sse_done(&tail.sse);
    }
    asking_close(&tail.asking);
    call_done(&call);
    return result;
}
