/* The load generator's connections: each carries one message (or batch) at a time. Closed loop (the
 * next message when the last one was answered), or a fixed rate, where a message waits for a free
 * connection and its delay counts from when it was due. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/bench/http_frame.h"
#include "tests/bench/input.h"
#include "tests/bench/load.h"

#define LAST_RETRY_NS  2000000000ULL /* after the end, what is refused is tried for so long */
#define HARD_STOP_MS   10000ULL      /* and then the program ends whatever is outstanding */
#define COUNT_LIMIT_NS 600000000000ULL

struct connection {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_timer_t timer;
    struct input input;
    bool is_up, is_busy;
    size_t current; /* index of the item it carries, of a batch the first */
    size_t count;
};

struct run {
    const struct load_options *options;
    struct load_result *result;
    uv_loop_t *loop;
    struct sockaddr_in address;
    struct connection *connections;
    unsigned *idle, idle_count, busy_count; /* idle: connections that wait, at a fixed rate */
    uint32_t *next_seq;                     /* by session */
    uint64_t end_ns;
    bool is_ending;
    uv_timer_t pace, end, hard_stop;
    char *request; /* owned */
};

static struct run run;

static void connection_open(struct connection *connection);

static void send_current(struct connection *connection)
{
    struct load_item *items = &run.result->items[connection->current];
    size_t len = load_request(run.options, items, connection->count, run.request);
    const uint64_t now = uv_hrtime();

    for (size_t i = 0; i < connection->count; i++) {
        if (items[i].attempts++ == 0) {
            items[i].send_ns = now;
        }
    }
    /* A broken connection shows in its reader. */
    (void)stream_write((uv_stream_t *)&connection->tcp, run.request, len);
}

static void set_idle(struct connection *connection)
{
    if (connection->is_busy) {
        connection->is_busy = false;
        run.busy_count--;
    }
    if (run.is_ending) {
        if (run.busy_count == 0) {
            uv_stop(run.loop);
        }
    } else if (run.options->rate > 0 && connection->is_up &&
               run.idle_count < run.options->connections) {
        run.idle[run.idle_count++] = (unsigned)(connection - run.connections);
    }
}

static size_t new_item(uint64_t due_ns)
{
    struct load_result *result = run.result;

    if (result->count == result->cap) {
        result->cap = result->cap ? result->cap * 2 : (size_t)1 << 18;
        result->items = realloc(result->items, result->cap * sizeof(*result->items));
        if (!result->items) {
            abort();
        }
    }
    uint32_t session = (uint32_t)(result->count % run.options->sessions);

    result->items[result->count] = (struct load_item){
        .session = session,
        .seq = run.next_seq[session]++,
        .due_ns = due_ns,
    };
    return result->count++;
}

static bool is_over(uint64_t now)
{
    const struct load_options *options = run.options;

    if (options->count > 0 ? run.result->count >= options->count : now >= run.end_ns) {
        run.is_ending = true;
    }
    return run.is_ending;
}

static uint64_t due_count(uint64_t now)
{
    return (uint64_t)((double)(now - run.result->start_ns) * run.options->rate / 1e9);
}

static void next_message(struct connection *connection)
{
    uint64_t now = uv_hrtime(), due_ns = now;
    double rate = run.options->rate;

    if (is_over(now) || (rate > 0 && run.result->count >= due_count(now))) {
        set_idle(connection);
        return;
    }
    if (rate > 0) {
        due_ns = run.result->start_ns + (uint64_t)((double)(run.result->count + 1) * 1e9 / rate);
    }
    if (!connection->is_busy) {
        connection->is_busy = true;
        run.busy_count++;
    }
    connection->current = new_item(due_ns);
    connection->count = 1;
    while (connection->count < run.options->batch) {
        (void)new_item(due_ns);
        connection->count++;
    }
    send_current(connection);
}

static bool gives_up(void)
{
    return run.is_ending && uv_hrtime() > run.end_ns + LAST_RETRY_NS;
}

static void on_retry(uv_timer_t *timer)
{
    struct connection *connection = timer->data;

    if (!connection->is_up) {
        connection_open(connection);
    } else if (gives_up()) {
        set_idle(connection);
    } else {
        send_current(connection);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;

    connection->input.len = 0;
    uv_timer_start(&connection->timer, on_retry, run.options->retry_ms + 1, 0);
}

/* What it carried stays without an answer: it may or may not have been accepted. */
static void on_broken(struct connection *connection)
{
    if (uv_is_closing((uv_handle_t *)&connection->tcp)) {
        return;
    }
    run.result->broken_connections++;
    connection->is_up = false;
    if (connection->is_busy) {
        set_idle(connection);
    }
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

static void on_answer(struct connection *connection, int status)
{
    struct load_item *item = &run.result->items[connection->current];

    run.result->statuses[status]++;
    if ((status == 429 || status == 503) && !gives_up()) {
        run.result->retries++;
        uv_timer_start(&connection->timer, on_retry, run.options->retry_ms, 0);
        return;
    }
    item->status = status;
    item->answer_ns = uv_hrtime();
    next_message(connection);
}

/* Statuses of the lines of a batch, in order. What was refused is not sent again: it would come
 * behind what was sent meanwhile. */
static void on_batch_answer(struct connection *connection, struct span body)
{
    static const char name[] = "\"status\":";
    const char *at = body.ptr, *end = body.ptr + body.len;
    const uint64_t now = uv_hrtime();

    for (size_t i = 0; i < connection->count; i++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *found =
            line_end ? memmem(at, (size_t)(line_end - at), name, sizeof(name) - 1) : NULL;
        const long status = found ? strtol(found + sizeof(name) - 1, NULL, 10) : 0;

        if (status < 100 || status >= LOAD_STATUS_MAX) {
            fprintf(stderr, "load: an answer line without a status\n");
            exit(1);
        }
        run.result->statuses[status]++;
        run.result->items[connection->current + i].status = (int)status;
        run.result->items[connection->current + i].answer_ns = now;
        at = line_end + 1;
    }
    next_message(connection);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct connection *connection = handle->data;

    (void)suggested;
    *ret = input_room(&connection->input);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct connection *connection = stream->data;
    struct http_frame frame;

    (void)buffer;
    if (got < 0) {
        on_broken(connection);
        return;
    }
    connection->input.len += (size_t)got;
    int64_t used = http_frame_read(connection->input.bytes, connection->input.len, &frame);

    if (used == 0) {
        return;
    }
    struct span word = used > 0 ? http_frame_word(&frame) : (struct span){0};
    long status = word.len == 3 ? strtol(word.ptr, NULL, 10) : 0;
    bool is_last = used > 0 && frame.is_last;

    if (status < 100 || status >= LOAD_STATUS_MAX || !connection->is_busy) {
        on_broken(connection);
        return;
    }
    if (run.options->batch > 0 && status == 200) {
        on_batch_answer(connection, frame.body);
        input_consume(&connection->input, (size_t)used);
    } else {
        input_consume(&connection->input, (size_t)used);
        on_answer(connection, (int)status);
    }
    if (is_last) {
        on_broken(connection);
    }
}

static void on_connect(uv_connect_t *request, int status)
{
    struct connection *connection = request->data;

    if (status < 0) {
        on_broken(connection);
        return;
    }
    connection->is_up = true;
    uv_tcp_nodelay(&connection->tcp, 1);
    uv_read_start((uv_stream_t *)&connection->tcp, on_room, on_read);
    next_message(connection);
}

static void connection_open(struct connection *connection)
{
    uv_tcp_init(run.loop, &connection->tcp);
    connection->tcp.data = connection->connect.data = connection;
    int err = uv_tcp_connect(&connection->connect, &connection->tcp,
                             (const struct sockaddr *)&run.address, on_connect);

    if (err < 0) {
        on_broken(connection);
    }
}

static void on_pace(uv_timer_t *timer)
{
    uint64_t now = uv_hrtime();

    (void)timer;
    if (is_over(now)) {
        if (run.busy_count == 0) {
            uv_stop(run.loop);
        }
        return;
    }
    uint64_t due = due_count(now);

    while (run.idle_count > 0 && run.result->count < due && !run.is_ending) {
        struct connection *connection = &run.connections[run.idle[--run.idle_count]];

        if (connection->is_up && !connection->is_busy) {
            next_message(connection);
        }
    }
}

/* The last message may have been given up before the end, with nothing left that would notice it.
 */
static void on_end(uv_timer_t *timer)
{
    (void)timer;
    if (is_over(uv_hrtime()) && run.busy_count == 0) {
        uv_stop(run.loop);
    }
}

static void on_hard_stop(uv_timer_t *timer)
{
    (void)timer;
    fprintf(stderr, "load: hard stop, %u without an answer\n", run.busy_count);
    uv_stop(run.loop);
}

static void start_timers(void)
{
    uint64_t length_ns = run.end_ns - run.result->start_ns;

    uv_timer_init(run.loop, &run.pace);
    if (run.options->rate > 0) {
        uv_timer_start(&run.pace, on_pace, 1, 1);
    }
    uv_timer_init(run.loop, &run.end);
    uv_timer_start(&run.end, on_end, length_ns / 1000000 + 1, 0);
    uv_timer_init(run.loop, &run.hard_stop);
    uv_timer_start(&run.hard_stop, on_hard_stop, length_ns / 1000000 + HARD_STOP_MS, 0);
}

void load_run(const struct load_options *options, struct load_result *ret)
{
    run.options = options;
    run.result = ret;
    run.loop = uv_default_loop();
    run.connections = calloc(options->connections, sizeof(*run.connections));
    run.next_seq = calloc(options->sessions, sizeof(*run.next_seq));
    run.idle = calloc(options->connections, sizeof(*run.idle));
    run.request = malloc(load_request_max(options));
    if (!run.connections || !run.next_seq || !run.idle || !run.request) {
        abort();
    }
    uv_ip4_addr("127.0.0.1", (int)options->port, &run.address);
    ret->start_ns = uv_hrtime();
    run.end_ns =
        ret->start_ns + (options->count > 0 ? COUNT_LIMIT_NS : (uint64_t)(options->seconds * 1e9));
    for (unsigned i = 0; i < options->connections; i++) {
        struct connection *connection = &run.connections[i];

        uv_timer_init(run.loop, &connection->timer);
        connection->timer.data = connection;
        connection_open(connection);
    }
    start_timers();
    uv_run(run.loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < options->connections; i++) {
        input_done(&run.connections[i].input);
    }
    free(run.connections);
    free(run.next_seq);
    free(run.idle);
    free(run.request);
}
