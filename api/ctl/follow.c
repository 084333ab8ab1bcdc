/* Follows a stream of events. Every connection but the first begins behind the last event shown. */
#include "api/ctl/follow.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/ctl/answers.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/http_client.h"
#include "api/ctl/options.h"
#include "api/ctl/print.h"
#include "api/ctl/sse.h"
#include "common/core/keys.h"

#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 5000
#define LINE_ROOM    ((size_t)8 << 20)

struct follow {
    const struct options *options;
    struct sse sse;
    bool has_begun; /* an event came on this connection */
};

/* ---- what is shown ---- */

static struct span text_of(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);

    return json_is_string(value)
               ? (struct span){json_string_value(value), json_string_length(value)}
               : (struct span){"", 0};
}

static void add_rest(const json_t *root, struct buf *out)
{
    static const char *const shown[] = {"type",    "workspaceID", "sessionID",
                                        "entryID", "kind",        "at"};
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        bool is_shown = false;

        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
            is_shown = is_shown || strcmp(name, shown[i]) == 0;
        }
        if (is_shown) {
            continue;
        }
        (void)buf_append_str(out, " ");
        print_safe(out, span_of(name));
        if (json_is_string(value)) {
            (void)buf_append_str(out, "=");
            print_safe(out, text_of(root, name));
        } else if (json_is_integer(value)) {
            (void)buf_appendf(out, "=%lld", (long long)json_integer_value(value));
        }
    }
}

int follow_write_line(struct span name, struct span json, struct buf *out)
{
    json_t *root = json_loadb(json.ptr, json.len, JSON_ALLOW_NUL, NULL);

    if (!json_is_object(root)) {
        json_decref(root);
        return -EINVAL;
    }
    if (span_equal(name, span_of("reset"))) {
        (void)buf_append_str(out, "-- events are missing here (");
        print_safe(out, text_of(root, "reason"));
        (void)buf_append_str(out, ") --\n");
    } else {
        print_safe(out, text_of(root, "at"));
        (void)buf_append_str(out, "  ");
        const size_t start = out->len;

        print_safe(out, text_of(root, "type"));
        (void)buf_appendf(out, "%*s", out->len - start < 10 ? (int)(10 - (out->len - start)) : 0,
                          "");
        (void)buf_append_str(out, "  ");
        print_safe(out, text_of(root, "workspaceID"));
        (void)buf_append_str(out, "/");
        print_safe(out, text_of(root, "sessionID"));
        (void)buf_append_str(out, "  ");
        print_safe(out, text_of(root, "entryID"));
        (void)buf_append_str(out, "  ");
        print_safe(out, text_of(root, "kind"));
        add_rest(root, out);
        (void)buf_append_str(out, "\n");
    }
    json_decref(root);
    return out->failed ? -EINVAL : 0;
}

/* {"id":…,"event":…,"data":…}, a line each: what --last needs stands in it. */
static int write_json(const struct sse_event *event, struct buf *out)
{
    json_t *data = json_loadb(event->data.ptr, event->data.len, JSON_ALLOW_NUL, NULL);
    json_t *root =
        data ? json_pack("{s:s%, s:s%, s:o}", "id", event->last_id.ptr, event->last_id.len, "event",
                         event->name.ptr, event->name.len, "data", data)
             : NULL;
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

    if (text) {
        (void)buf_append_str(out, text);
        (void)buf_append_str(out, "\n");
    }
    free(text);
    json_decref(root);
    return text ? 0 : -EINVAL;
}

static void on_event(const struct sse_event *event, void *arg)
{
    struct follow *follow = arg;
    struct buf out;

    follow->has_begun = true;
    if (span_equal(event->name, span_of("heartbeat"))) {
        return;
    }
    buf_init(&out, LINE_ROOM);
    if ((follow->options->is_json ? write_json(event, &out)
                                  : follow_write_line(event->name, event->data, &out)) == 0) {
        (void)fwrite(out.bytes, 1, out.len, stdout);
        (void)fflush(stdout); /* a closed pipe ends us by its signal */
    }
    buf_done(&out);
}

static bool on_bytes(struct span bytes, void *arg)
{
    struct follow *follow = arg;

    return sse_feed(&follow->sse, bytes) == 0;
}

/* ---- following ---- */

static int path_of(const struct options *options, char *path, size_t size)
{
    const char *workspace = options->argument_count > 1 ? options->arguments[1] : NULL;
    const char *session = options->argument_count > 2 ? options->arguments[2] : NULL;

    if (workspace && !workspace_name_is_valid(workspace, strlen(workspace))) {
        options_complain("\"%s\" is no workspace: 1 to 64 of A-Z a-z 0-9 . _ : ~ %% -", workspace);
        return -EINVAL;
    }
    if (session && !session_name_is_valid(session, strlen(session))) {
        options_complain("\"%s\" is no session: 1 to 128 of A-Z a-z 0-9 . _ : ~ %% -", session);
        return -EINVAL;
    }
    if (!workspace) {
        snprintf(path, size, "/v1/events");
    } else if (!session) {
        snprintf(path, size, "/v1/workspaces/%s/events", workspace);
    } else {
        snprintf(path, size, "/v1/workspaces/%s/sessions/%s/events", workspace, session);
    }
    return 0;
}

static void pause_for(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL); /* cut short by a signal: one try earlier */
}

/* Once connected. True: the server will have nothing of it, now or later. */
static bool is_final(const struct http_answer *answer)
{
    return answer->status >= 400 && answer->status < 500 && answer->status != 429;
}

static int follow_path(struct follow *follow, struct http_client *client, const char *path)
{
    long pause_ms = PAUSE_MIN_MS;

    for (bool is_first = true;; is_first = false) {
        struct http_answer answer;
        const char *last = follow->sse.last_id.len > 0 ? follow->sse.last_id.bytes : NULL;

        follow->has_begun = false;
        sse_restart(&follow->sse);
        const int err = http_client_stream(client, path, last, on_bytes, follow, &answer);

        if (err == 0 && answer.status != 200 && (is_first || is_final(&answer))) {
            const int result = answer_explain(&answer, follow->options->server);

            http_answer_done(&answer);
            return result;
        }
        if (err < 0 && is_first && !follow->has_begun) {
            fprintf(stderr, "outboxctl: no answer from %s: %s\n", follow->options->server,
                    http_client_mistake(client));
            return EXIT_CODE_FAILED;
        }
        if (err == 0) {
            http_answer_done(&answer);
        }
        pause_ms = follow->has_begun ? PAUSE_MIN_MS : pause_ms * 2;
        pause_ms = pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS;
        pause_for(pause_ms);
    }
}

int follow_run(const struct options *options, struct http_client *client)
{
    struct follow follow = {.options = options};
    char path[WORKSPACE_MAX + SESSION_MAX + 64];

    if (path_of(options, path, sizeof(path)) < 0) {
        return EXIT_CODE_USAGE;
    }
    sse_init(&follow.sse, span_of(options->last_event_id ? options->last_event_id : ""), on_event,
             &follow);
    const int result = follow_path(&follow, client, path);

    sse_done(&follow.sse);
    return result;
}
