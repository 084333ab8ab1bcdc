/* One XREAD at a time over all streams. A short pause after each that brought something: under load
 * a round then takes many events, and the store is asked a hundred times a second, not once per
 * event. */
#include "common/store/event_tail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "common/store/store_internal.h"

#define BLOCK_MS        5000
#define BLOCK_TEXT      "5000"
#define PER_STREAM      200
#define PER_STREAM_TEXT "200"
#define PAUSE_MS        10
#define AGAIN_MS        200 /* after an error on a connection that works */
#define LEAD            6   /* XREAD BLOCK n COUNT n STREAMS */
#define KEY_TEXT_MAX    24

struct event_tail {
    struct store_conn *conn;
    uv_timer_t timer;
    struct event_tail_options options;
    struct stream_id at[PARTITION_COUNT];
    char keys[PARTITION_COUNT][KEY_TEXT_MAX];
    bool is_following, is_asking, is_closing;
    uint32_t open_parts; /* connection, timer */
};

static void ask(struct event_tail *tail);

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static void ask_in(struct event_tail *tail, uint64_t delay_ms)
{
    uv_timer_start(&tail->timer, on_timer, delay_ms, 0);
}

static int64_t partition_of_key(const struct event_tail *tail, struct span key)
{
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        if (span_equal(key, span_of(tail->keys[p]))) {
            return (int64_t)p;
        }
    }
    return -1;
}

/* How far a list reaches, whatever its owner makes of it. */
static struct stream_id last_of(struct store_event_list list)
{
    struct store_event event;
    struct stream_id last = {0};

    while (store_event_next(&list, &event)) {
        last = stream_id_later(last, event.id);
    }
    return last;
}

/* {{key, {event, …}}, …}; nil: nothing new. Returns whether a stream had as many as were asked for.
 */
static bool read_streams(struct event_tail *tail, const struct redisReply *reply)
{
    bool is_behind = false;

    for (size_t i = 0; reply_is_array(reply, 0) && i < reply->elements; i++) {
        const struct redisReply *stream = reply->element[i];

        if (!reply_is_array(stream, 2) || !reply_is_array(stream->element[1], 1)) {
            continue;
        }
        const int64_t p = partition_of_key(tail, reply_span(stream->element[0]));

        if (p < 0) {
            continue;
        }
        struct store_event_list list = {.partition = (uint32_t)p, .rows = stream->element[1]};

        is_behind = is_behind || list.rows->elements >= PER_STREAM;
        tail->at[p] = stream_id_later(tail->at[p], last_of(list));
        tail->options.on_events(&list, tail->options.arg);
    }
    return is_behind;
}

static void on_reply(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct event_tail *tail = arg;

    tail->is_asking = false;
    if (tail->is_closing || !tail->is_following) {
        return;
    }
    if (result != STORE_OK) {
        tail->is_following = tail->options.on_lost(result, tail->options.arg);
        ask_in(tail, AGAIN_MS); /* while it is away `ask` waits for on_state */
        return;
    }
    const bool is_behind = read_streams(tail, reply);
    const bool brought = reply && reply->type != REDIS_REPLY_NIL;

    tail->is_following = tail->options.on_round(is_behind, tail->options.arg);
    if (tail->is_following) {
        ask_in(tail, brought && !is_behind ? PAUSE_MS : 0);
    }
}

static void ask(struct event_tail *tail)
{
    struct span argv[LEAD + 2 * PARTITION_COUNT];
    char ids[PARTITION_COUNT][STREAM_ID_TEXT_MAX];
    static const char *const lead[LEAD] = {"XREAD", "BLOCK",         BLOCK_TEXT,
                                           "COUNT", PER_STREAM_TEXT, "STREAMS"};

    if (tail->is_closing || tail->is_asking || !tail->is_following ||
        !store_conn_is_up(tail->conn)) {
        return;
    }
    for (size_t i = 0; i < LEAD; i++) {
        argv[i] = span_of(lead[i]);
    }
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        argv[LEAD + p] = span_of(tail->keys[p]);
        const size_t len = stream_id_format(tail->at[p], ids[p]);

        argv[LEAD + PARTITION_COUNT + p] = (struct span){ids[p], len};
    }
    tail->is_asking = true;
    store_conn_command(tail->conn, LEAD + 2 * PARTITION_COUNT, argv, on_reply, tail);
}

static void on_state(struct store_conn *conn, bool is_up, enum store_result why, void *arg)
{
    struct event_tail *tail = arg;

    (void)conn;
    if (is_up) {
        ask_in(tail, 0); /* not from here: the pointer may not be in our hands yet */
    } else if (tail->is_following) {
        tail->is_following = tail->options.on_lost(why, tail->options.arg);
    }
}

int event_tail_open(struct uv_loop_s *loop, const struct event_tail_options *options,
                    struct event_tail **ret)
{
    struct event_tail *tail = calloc(1, sizeof(*tail));

    if (!tail) {
        return -ENOMEM;
    }
    const struct store_conn_options conn_options = {
        .url = options->url,
        .password = options->password,
        .max_outstanding = 2,
        .connect_timeout_ms = options->connect_timeout_ms,
        .command_timeout_ms = BLOCK_MS + options->connect_timeout_ms,
        .reconnect_min_ms = 50,
        .reconnect_max_ms = 2000,
        .on_state = on_state,
        .arg = tail,
    };

    tail->options = *options;
    tail->options.url = tail->options.password = NULL; /* the connection has its own copies */
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        snprintf(tail->keys[p], KEY_TEXT_MAX, "outboxev:{%zu}", p);
    }
    const int err = store_conn_open(loop, &conn_options, &tail->conn);

    if (err < 0) {
        free(tail);
        return err;
    }
    uv_timer_init(loop, &tail->timer);
    tail->timer.data = tail;
    tail->open_parts = 2;
    *ret = tail;
    return 0;
}

void event_tail_follow(struct event_tail *tail, const struct stream_id from[PARTITION_COUNT])
{
    memcpy(tail->at, from, sizeof(tail->at));
    tail->is_following = true;
    ask(tail);
}

static void on_part_closed(struct event_tail *tail)
{
    if (--tail->open_parts == 0) {
        free(tail);
    }
}

static void on_conn_closed(void *arg)
{
    on_part_closed(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

void event_tail_close(struct event_tail **tail_ptr)
{
    struct event_tail *tail = *tail_ptr;

    *tail_ptr = NULL;
    if (tail) {
        tail->is_closing = true;
        store_conn_close(tail->conn, on_conn_closed, tail);
        uv_close((uv_handle_t *)&tail->timer, on_timer_closed);
    }
}
