/* The benchmark's target: answers every request at once (or after --delay-ms) and keeps when it
 * came. Loopback, one thread. GET /__stats tells the counts, /__reset forgets all, /__dump writes
 * the log; INT and TERM write it too. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/bench/http_frame.h"
#include "tests/bench/input.h"
#include "tests/bench/sink_log.h"

#define ANSWER_STATUS 200
#define ANSWER                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"

struct sink {
    uv_loop_t *loop;
    uv_tcp_t listener;
    uv_signal_t on_int, on_term;
    struct sink_log log;
    const char *log_path;
    uint64_t requests, delay_ms;
    unsigned port;
};

struct connection {
    uv_tcp_t tcp;
    uv_timer_t timer;
    struct input input;
    uint64_t begin_ns; /* when the first byte of the message now read was there */
    size_t record;
    unsigned open_handles;
};

static struct sink sink = {.port = 9100};

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;

    if (--connection->open_handles == 0) {
        input_done(&connection->input);
        free(connection);
    }
}

static void connection_close(struct connection *connection)
{
    if (!uv_is_closing((uv_handle_t *)&connection->tcp)) {
        uv_close((uv_handle_t *)&connection->tcp, on_closed);
        uv_close((uv_handle_t *)&connection->timer, on_closed);
    }
}

static void answer(struct connection *connection)
{
    sink_log_answered(&sink.log, connection->record, uv_hrtime(), ANSWER_STATUS);
    if (stream_write((uv_stream_t *)&connection->tcp, ANSWER, sizeof(ANSWER) - 1) < 0) {
        connection_close(connection);
    }
}

static void on_delay(uv_timer_t *timer)
{
    answer(timer->data);
}

/* Requests about the sink itself. */
static void answer_stats(struct connection *connection, struct span path)
{
    char body[160], text[320];

    if (span_equal(path, span_of("/__reset"))) {
        sink_log_reset(&sink.log);
        sink.requests = 0;
    } else if (span_equal(path, span_of("/__dump")) && sink.log_path) {
        if (sink_log_write(&sink.log, sink.log_path) < 0) {
            fprintf(stderr, "sink: cannot write %s\n", sink.log_path);
        }
    }
    int body_len =
        snprintf(body, sizeof(body),
                 "{\"requests\":%" PRIu64 ",\"recorded\":%zu,\"without_id\":%" PRIu64 "}\n",
                 sink.requests, sink.log.count, sink.log.without_id);
    int len = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
                       body_len, body);

    (void)stream_write((uv_stream_t *)&connection->tcp, text, (size_t)len);
}

static void serve(struct connection *connection, const struct http_frame *request)
{
    struct span path = http_frame_word(request);

    if (path.len > 3 && memcmp(path.ptr, "/__", 3) == 0) {
        answer_stats(connection, path);
        return;
    }
    sink.requests++;
    connection->record = sink_log_add(&sink.log, path, request->body, connection->begin_ns);
    if (sink.delay_ms > 0) {
        uv_timer_start(&connection->timer, on_delay, sink.delay_ms, 0);
    } else {
        answer(connection);
    }
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
    struct input *input = &connection->input;

    (void)buffer;
    if (got < 0) {
        connection_close(connection);
        return;
    }
    if (input->len == 0) {
        connection->begin_ns = uv_hrtime();
    }
    input->len += (size_t)got;
    while (input->len > 0) {
        struct http_frame request;
        int64_t used = http_frame_read(input->bytes, input->len, &request);

        if (used < 0) {
            connection_close(connection);
            return;
        }
        if (used == 0) {
            return;
        }
        serve(connection, &request);
        input_consume(input, (size_t)used);
        if (request.is_last && sink.delay_ms == 0) {
            connection_close(connection);
            return;
        }
        connection->begin_ns = uv_hrtime();
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct connection *connection = status < 0 ? NULL : calloc(1, sizeof(*connection));

    if (!connection) {
        return;
    }
    uv_tcp_init(sink.loop, &connection->tcp);
    uv_timer_init(sink.loop, &connection->timer);
    connection->tcp.data = connection->timer.data = connection;
    connection->open_handles = 2;
    connection->record = SIZE_MAX;
    if (uv_accept(listener, (uv_stream_t *)&connection->tcp) < 0) {
        connection_close(connection);
        return;
    }
    uv_tcp_nodelay(&connection->tcp, 1);
    uv_read_start((uv_stream_t *)&connection->tcp, on_room, on_read);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    if (sink.log_path && sink_log_write(&sink.log, sink.log_path) < 0) {
        fprintf(stderr, "sink: cannot write %s\n", sink.log_path);
    }
    uv_stop(sink.loop);
}

static int start(void)
{
    struct sockaddr_in address;
    uv_stream_t *listener = (uv_stream_t *)&sink.listener;

    sink.loop = uv_default_loop();
    uv_ip4_addr("127.0.0.1", (int)sink.port, &address);
    uv_tcp_init(sink.loop, &sink.listener);
    int err = uv_tcp_bind(&sink.listener, (const struct sockaddr *)&address, 0);

    if (err == 0) {
        err = uv_listen(listener, 1024, on_connection);
    }
    uv_signal_init(sink.loop, &sink.on_int);
    uv_signal_init(sink.loop, &sink.on_term);
    uv_signal_start(&sink.on_int, on_signal, SIGINT);
    uv_signal_start(&sink.on_term, on_signal, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    return err;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},
        {"log", required_argument, NULL, 'l'},
        {"delay-ms", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'p':
            sink.port = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'l':
            sink.log_path = optarg;
            break;
        case 'd':
            sink.delay_ms = strtoull(optarg, NULL, 10);
            break;
        default:
            fprintf(stderr, "usage: bench-sink [--port N] [--log FILE] [--delay-ms N]\n");
            return 2;
        }
    }
    int err = start();

    if (err < 0) {
        fprintf(stderr, "sink: cannot listen on 127.0.0.1:%u: %s\n", sink.port, uv_strerror(err));
        return 1;
    }
    uv_run(sink.loop, UV_RUN_DEFAULT);
    return 0;
}
