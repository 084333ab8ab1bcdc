/* Reads event streams. See store_events.h. */
#include "common/store/store_events.h"

#include <errno.h>
#include <stdlib.h>

#include "common/store/store_internal.h"

#define DELAYED_PAGE 500

struct span store_event_field(const struct store_event *event, const char *name)
{
    for (size_t i = 0; i < event->field_count; i++) {
        if (span_equal(event->fields[i].name, span_of(name))) {
            return event->fields[i].value;
        }
    }
    return (struct span){"", 0};
}

/* {id, {name, value, …}} */
static int read_event(const struct redisReply *row, struct store_event *ret)
{
    if (!reply_is_array(row, 2) || !reply_is_array(row->element[1], 0) ||
        stream_id_parse(reply_span(row->element[0]), &ret->id) < 0) {
        return -EBADMSG;
    }
    const struct redisReply *flat = row->element[1];

    ret->field_count = 0;
    for (size_t i = 0; i + 1 < flat->elements && ret->field_count < EVENT_FIELDS_MAX; i += 2) {
        ret->fields[ret->field_count++] = (struct store_event_field){
            reply_span(flat->element[i]), reply_span(flat->element[i + 1])};
    }
    return 0;
}

bool store_event_next(struct store_event_list *list, struct store_event *ret)
{
    ret->partition = list->partition;
    while (list->rows && list->next < list->rows->elements) {
        if (read_event(list->rows->element[list->next++], ret) == 0) {
            return true;
        }
    }
    return false;
}

/* A typed answer knows neither its partition nor how much was asked for. */
struct asked {
    void (*cb)(void);
    void *arg;
    uint32_t partition, max;
};

static struct asked *asked_create(void (*cb)(void), void *arg, uint32_t partition, uint32_t max)
{
    struct asked *asked = malloc(sizeof(*asked));

    if (!asked) {
        abort(); /* a small fixed object */
    }
    *asked = (struct asked){cb, arg, partition, max};
    return asked;
}

static void read_events(struct pending *pending, enum store_result result,
                        const struct redisReply *reply)
{
    struct asked asked = *(struct asked *)pending->arg;
    store_events_cb *cb = (store_events_cb *)asked.cb;
    struct events_answer answer = {0};

    free(pending->arg);
    if (result == STORE_OK && (!reply_is_array(reply, 5) || !reply_is_array(reply->element[4], 0) ||
                               stream_id_parse(reply_span(reply->element[1]), &answer.first) < 0 ||
                               stream_id_parse(reply_span(reply->element[2]), &answer.last) < 0)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, asked.arg);
        return;
    }
    answer.now_ms = reply_number(reply->element[0]);
    answer.is_whole = reply_number(reply->element[3]) == 1;
    answer.events.partition = asked.partition;
    answer.events.rows = reply->element[4];
    answer.is_full = asked.max > 0 && answer.events.rows->elements >= asked.max;
    cb(STORE_OK, &answer, asked.arg);
}

void store_events(struct store *store, uint32_t partition, struct stream_id after, uint32_t max,
                  store_events_cb *cb, void *arg)
{
    char id[STREAM_ID_TEXT_MAX];
    const size_t len = stream_id_format(after, id);
    struct call call;

    call_init(&call, store, SCRIPT_EVENTS, partition);
    call_key(&call, "outboxev", partition, (struct span){0}, (struct span){0});
    call_span(&call, (struct span){id, len});
    call_number(&call, max);
    call_send(&call, read_events, NULL, asked_create((void (*)(void))cb, arg, partition, max));
}

static void read_delayed(struct pending *pending, enum store_result result,
                         const struct redisReply *reply)
{
    struct asked asked = *(struct asked *)pending->arg;
    store_delayed_cb *cb = (store_delayed_cb *)asked.cb;

    free(pending->arg);
    if (result == STORE_OK &&
        (!reply_is_array(reply, 4) || !reply_is_array(reply->element[3], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, asked.arg);
        return;
    }
    struct delayed_answer answer = {
        .now_ms = reply_number(reply->element[0]),
        .looked_to_ms = reply_number(reply->element[1]),
        .next_ms = reply_number(reply->element[2]),
        .partition = asked.partition,
        .rows = reply->element[3],
    };

    cb(STORE_OK, &answer, asked.arg);
}

void store_delayed(struct store *store, uint32_t partition, int64_t stuck_after_ms, int64_t from_ms,
                   store_delayed_cb *cb, void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_DELAYED, partition);
    call_key(&call, "outboxopen", partition, (struct span){0}, (struct span){0});
    call_number(&call, stuck_after_ms);
    call_number(&call, from_ms);
    call_number(&call, DELAYED_PAGE);
    call_send(&call, read_delayed, NULL, asked_create((void (*)(void))cb, arg, partition, 0));
}

/* {when, workspace, id, session, clientMessageID, userID, kind}: some of them empty */
bool store_delayed_next(struct delayed_answer *answer, struct store_event *ret)
{
    static const char *const names[] = {
        NULL, "workspaceID", "entryID", "sessionID", "clientMessageID", "userID", "kind"};
    const size_t count = sizeof(names) / sizeof(names[0]);

    while (answer->next < answer->rows->elements) {
        const struct redisReply *row = answer->rows->element[answer->next++];

        if (!reply_is_array(row, count)) {
            continue;
        }
        const int64_t when = reply_number(row->element[0]);

        *ret = (struct store_event){.partition = answer->partition,
                                    .id = {when > 0 ? (uint64_t)when : 0, 0}};
        ret->fields[ret->field_count++] =
            (struct store_event_field){span_of("type"), span_of("delayed")};
        for (size_t i = 1; i < count; i++) {
            const struct span value = reply_span(row->element[i]);

            if (value.len > 0) {
                ret->fields[ret->field_count++] =
                    (struct store_event_field){span_of(names[i]), value};
            }
        }
        return true;
    }
    return false;
}
