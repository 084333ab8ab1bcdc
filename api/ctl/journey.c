/* Resumes the session's stream of events where the entry was accepted, and ends it at the heartbeat
 * by which the server says that all was told. */
#include "api/ctl/journey.h"

#include <stdio.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/print.h"
#include "api/ctl/sse.h"
#include "api/event_position.h"
#include "common/core/keys.h"

#define READ_MS 5000

struct reading {
    struct sse sse;
    const char *id;
    json_t *events;
    bool is_complete; /* the server has told all it keeps */
    bool is_trimmed;  /* and that is not all there was */
};

static void on_event(const struct sse_event *event, void *arg)
{
    struct reading *reading = arg;

    if (span_equal(event->name, span_of("heartbeat"))) {
        reading->is_complete = true;
    } else if (span_equal(event->name, span_of("reset"))) {
        reading->is_complete = true;
        reading->is_trimmed = true;
    } else {
        json_t *data = json_loadb(event->data.ptr, event->data.len, JSON_ALLOW_NUL, NULL);

        if (strcmp(answer_text(data, "entryID"), reading->id) == 0) {
            json_array_append(reading->events, data);
        }
        json_decref(data);
    }
}

static bool on_bytes(struct span bytes, void *arg)
{
    struct reading *reading = arg;

    return sse_feed(&reading->sse, bytes) == 0 && !reading->is_complete;
}

static void read_stream(struct asking *asking, const char *path, const char *position,
                        struct reading *reading)
{
    struct http_answer answer;

    http_client_set_limits(asking->client, READ_MS, READ_MS);
    sse_init(&reading->sse, span_of(position), on_event, reading);
    /* Ended by us, by the server or by the time limit: what counts is how far it came. */
    if (http_client_stream(asking->client, path, position, on_bytes, reading, &answer) == 0) {
        http_answer_done(&answer);
    }
    sse_done(&reading->sse);
}

void journey_read(struct asking *asking, const char *workspace, const json_t *entry,
                  struct journey *ret)
{
    const char *session = answer_text(entry, "sessionID");
    struct reading reading = {.id = answer_text(entry, "id"), .events = json_array()};
    char position[EVENT_POSITION_TEXT_MAX], path[WORKSPACE_MAX + SESSION_MAX + 64];
    int64_t accepted_ms = 0;

    *ret = (struct journey){.events = reading.events, .note = "the server does not tell it"};
    if (print_parse_time(answer_text(entry, "acceptedAt"), &accepted_ms) < 0 || accepted_ms <= 0 ||
        !session_name_is_valid(session, strlen(session))) {
        return;
    }
    /* Events carry the store's time, as the acceptance does. */
    (void)event_position_write(partition_of(workspace, strlen(workspace)),
                               (struct stream_id){(uint64_t)accepted_ms - 1, 0}, position);
    snprintf(path, sizeof(path), "/v1/workspaces/%s/sessions/%s/events", workspace, session);
    read_stream(asking, path, position, &reading);
    ret->note = reading.is_trimmed     ? "older events are no longer kept"
                : !reading.is_complete ? "not all events could be read in time"
                                       : "";
}

void journey_done(struct journey *journey)
{
    json_decref(journey->events);
    journey->events = NULL;
}
