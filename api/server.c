/* The library's own loop is run by ours: when its epoll descriptor is readable, when its time limit
 * is over, and once per turn after answers were made. It is never run from within a callback of its
 * own.
 *
 * A request is suspended while its handler waits for the store: the library then forgets the
 * connection, whatever the client does, and an accepted message goes its way although nobody is
 * left to hear the 202. */
#include "api/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "api/api.h"
#include "api/connection.h"
#include "api/epoll_filter.h"
#include "api/request.h"
#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"

#define CONNECTION_MEMORY (32U << 10) /* a head has to fit; beyond: the library's own 431 */
#define HEAD_MAX          (16U << 10) /* what PROBLEM_HEADERS_TOO_LARGE says */
#define BODY_ALLOWANCE    (16U << 10) /* of a body, beyond text, model and payload */
#define OUT_MAX           (512U << 20)
#define IDLE_MS           75000
#define WRITING_MS        60000
#define EXPIRE_EVERY_MS   100
#define FREE_REQUESTS_MAX 256
#define DROPPED_BODY_MAX  (1U << 20) /* read and dropped before the connection is given up */

struct listener {
    struct server *server;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    int fd, epoll_fd;
};

struct server {
    struct api *api;
    struct listener listeners[INHERIT_LISTEN_MAX];
    uint32_t listener_count;
    struct connections connections;
    size_t body_max;
    uv_check_t check; /* runs the library once per turn after answers were made */
    uv_idle_t idle;   /* keeps that turn from sleeping */
    uv_timer_t expire;
    bool is_due; /* answers were made */
    bool is_draining, is_closed;
    int64_t drain_deadline_ms, cut_idle_ms;
    void (*drained)(void *arg);
    void *drained_arg;
    struct request *free;
    uint32_t free_count;
};

/* ---- running the library ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;

    if (MHD_get_timeout(listener->daemon, &timeout_ms) == MHD_YES) {
        uv_timer_start(&listener->timer, on_timer, timeout_ms, 0);
    } else {
        uv_timer_stop(&listener->timer);
    }
}

static void run(struct listener *listener)
{
    MHD_run(listener->daemon);
    arm(listener);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    run(timer->data);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* only there so that the loop does not sleep while answers wait */
}

static void on_check(uv_check_t *check)
{
    struct server *server = check->data;

    if (!server->is_due) {
        return;
    }
    server->is_due = false;
    uv_idle_stop(&server->idle);
    for (uint32_t i = 0; i < server->listener_count; i++) {
        run(&server->listeners[i]);
    }
}

static void run_soon(struct server *server)
{
    if (!server->is_due) {
        server->is_due = true;
        uv_idle_start(&server->idle, on_idle);
    }
}

/* ---- requests ---- */

static struct request *request_new(struct server *server)
{
    struct request *request = server->free;

    if (request) {
        server->free = request->next_free;
        server->free_count--;
    } else {
        request = malloc(sizeof(*request));
        if (!request) {
            return NULL;
        }
        buf_init(&request->body, server->body_max);
        buf_init(&request->out, OUT_MAX);
    }
    struct buf body = request->body;
    struct buf out = request->out;

    memset(request, 0, offsetof(struct request, cmid));
    request->cmid_len = 0;
    request->session = (struct span){0};
    request->offset = request->listed = request->limit = 0;
    request->response = NULL;
    request->stream = (struct request_stream){0};
    request->status = 0;
    request->next_free = NULL;
    request->body = body;
    request->out = out;
    buf_reset(&request->body);
    buf_reset(&request->out);
    request->server = server;
    request->early = PROBLEM_NONE;
    return request;
}

static void request_free(struct server *server, struct request *request)
{
    /* What a large body or list needed is not kept. */
    const bool is_small = request->body.cap <= 8192 && request->out.cap <= 8192;

    if (request->stream.done) {
        request->stream.done(request->stream.arg,
                             request->connection && request->connection->is_cut);
    }
    if (request->response) {
        MHD_destroy_response(request->response);
    }
    if (is_small && server->free_count < FREE_REQUESTS_MAX) {
        request->next_free = server->free;
        server->free = request;
        server->free_count++;
        return;
    }
    buf_done(&request->body);
    buf_done(&request->out);
    free(request);
}

static void set_phase(struct request *request, enum connection_phase phase)
{
    if (request->connection) {
        connection_set_phase(&request->server->connections, request->connection, phase,
                             clock_mono_ms());
    }
}

struct framing {
    unsigned lengths, encodings;
};

static enum MHD_Result count_framing(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct framing *framing = cls;

    (void)kind;
    (void)value;
    framing->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    framing->encodings += strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    return MHD_YES;
}

/* Two lengths: a proxy before us may have gone by the other one, and what we took for the next
 * request would be part of a body (RFC 9112 §6.3). The library takes the first. */
static bool is_ambiguous(const struct request *request)
{
    struct framing framing = {0};

    MHD_get_connection_values(request->conn, MHD_HEADER_KIND, count_framing, &framing);
    return framing.lengths + framing.encodings > 1;
}

static bool is_head_too_large(const struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->conn, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info && info->header_size > HEAD_MAX;
}

/* Answered before the body is read: the library then closes the connection. */
static bool is_answered_at_once(enum problem_id problem)
{
    return problem == PROBLEM_TOO_LARGE || problem == PROBLEM_AMBIGUOUS_LENGTH ||
           problem == PROBLEM_HEADERS_TOO_LARGE;
}

/* What the head alone decides; the body is then read and dropped, so that the connection stays of
 * use. */
static void judge_head(struct request *request, const char *method, const char *url)
{
    const struct route_match match = route_find(http_method_of(method), span_of(url));

    request->route = match.route;
    request->params = match.params;
    request->allowed = match.allowed;
    if (is_ambiguous(request) || is_head_too_large(request)) {
        request->early =
            is_ambiguous(request) ? PROBLEM_AMBIGUOUS_LENGTH : PROBLEM_HEADERS_TOO_LARGE;
        return;
    }
    if (match.route == ROUTE_NONE) {
        request->early = match.allowed ? PROBLEM_METHOD_NOT_ALLOWED : PROBLEM_NOT_FOUND;
        return;
    }
    const struct span workspace = match.params.workspace;
    const struct span session = match.params.session;

    if ((workspace.len > 0 && !workspace_name_is_valid(workspace.ptr, workspace.len)) ||
        (session.len > 0 && !session_name_is_valid(session.ptr, session.len))) {
        request->early = PROBLEM_INVALID_NAME;
    }
    if (request->early == PROBLEM_NONE && route_takes_json(match.route)) {
        static const char json[] = "application/json";
        const struct span type = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
        const bool is_json =
            type.len >= sizeof(json) - 1 && strncasecmp(type.ptr, json, sizeof(json) - 1) == 0 &&
            (type.len == sizeof(json) - 1 || strchr("; \t", type.ptr[sizeof(json) - 1]));
        const struct span length = request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
        /* The library has checked that it is a number. */
        const unsigned long long announced = length.len > 0 ? strtoull(length.ptr, NULL, 10) : 0;

        if (announced > request->server->body_max) {
            request->early = PROBLEM_TOO_LARGE;
        } else if (!is_json) {
            request->early = PROBLEM_UNSUPPORTED_MEDIA_TYPE;
        }
        request->body_seen = 0;
    }
}

/* MHD_NO: the connection ends. Whoever sends on and on is not listened to for ever, but told why.
 */
static enum MHD_Result take_body(struct request *request, const char *bytes, size_t len)
{
    struct server *server = request->server;

    request->body_seen += len;
    if (request->body_seen > (uint64_t)server->body_max + DROPPED_BODY_MAX) {
        if (request->connection) {
            connection_cut(&server->connections, request->connection, PROBLEM_TOO_LARGE);
        }
        return MHD_NO;
    }
    if (request->early != PROBLEM_NONE || !route_takes_json(request->route)) {
        return MHD_YES;
    }
    if (buf_append(&request->body, bytes, len) < 0) {
        request->early = PROBLEM_TOO_LARGE;
    }
    return MHD_YES;
}

static void answer_early(struct request *request)
{
    if (route_is_accept(request->route)) {
        metrics_add(request->server->api->metrics, METRIC_accepts_total,
                    request->early == PROBLEM_TOO_LARGE ? LABEL_ACCEPT_RESULT_TOO_LARGE
                                                        : LABEL_ACCEPT_RESULT_INVALID,
                    1);
    }
    request_problem(request, request->early, (struct span){0});
    if (request->early == PROBLEM_METHOD_NOT_ALLOWED) {
        char allow[64] = "";

        for (unsigned method = 0; method < HTTP_METHOD_COUNT; method++) {
            if (request->allowed & 1U << method) {
                strncat(allow, allow[0] ? ", " : "", sizeof(allow) - strlen(allow) - 1);
                strncat(allow, http_method_name((enum http_method)method),
                        sizeof(allow) - strlen(allow) - 1);
            }
        }
        request_answer_header(request, MHD_HTTP_HEADER_ALLOW, allow);
    }
}

typedef void route_handler(struct api *api, struct request *request);

static void handle(struct request *request)
{
    static route_handler *const handlers[ROUTE_COUNT] = {
#define ROUTE(id, method, pattern, body, handler, label) [ROUTE_##id] = handler,
#include "api/routes.def"
    };

    handlers[request->route](request->server->api,
                             request); /* judge_head let no other number pass */
}

static enum MHD_Result send_answer(struct request *request)
{
    struct server *server = request->server;

    request->stage = REQUEST_ANSWERED;
    metrics_add_http_request(server->api->metrics, request->route, request->status, 1);
    if (!request->response) {
        return MHD_NO; /* out of memory: the connection is closed */
    }
    if (server->is_draining) {
        request_answer_header(request, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    set_phase(request, CONNECTION_WRITING);
    return MHD_queue_response(request->conn, request->status, request->response);
}

void server_resume(struct request *request)
{
    MHD_resume_connection(request->conn);
    run_soon(request->server);
}

void server_answered(struct request *request)
{
    if (request->stage == REQUEST_WAITING) {
        server_resume(request);
    }
}

void server_stream_begins(struct request *request)
{
    if (request->connection) {
        connection_bound_stream(request->connection);
    }
}

void server_streams(struct request *request, bool is_idle)
{
    set_phase(request, is_idle ? CONNECTION_WORKING : CONNECTION_WRITING);
    if (is_idle) {
        MHD_suspend_connection(request->conn);
    }
}

void server_cut(struct request *request)
{
    if (request->connection) {
        connection_cut(&request->server->connections, request->connection, PROBLEM_NONE);
    }
}

/* The request is complete. */
static enum MHD_Result complete(struct request *request)
{
    request->complete_ns = clock_mono_ns();
    request->stage = REQUEST_HANDLED;
    set_phase(request, CONNECTION_WORKING);
    if (request->early != PROBLEM_NONE) {
        answer_early(request);
        return send_answer(request);
    }
    handle(request);
    if (request->response || request->status != 0) {
        return send_answer(request);
    }
    request->stage = REQUEST_WAITING;
    MHD_suspend_connection(request->conn);
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **con_cls)
{
    struct server *server = cls;
    struct request *request = *con_cls;

    (void)version;
    if (!request) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        request = request_new(server);
        if (!request) {
            return MHD_NO;
        }
        *con_cls = request;
        request->conn = conn;
        request->connection = info ? info->socket_context : NULL;
        set_phase(request, CONNECTION_BODY);
        judge_head(request, method, url);
        if (is_answered_at_once(request->early)) {
            request->stage = REQUEST_HANDLED;
            answer_early(request);
            return send_answer(request);
        }
        return MHD_YES;
    }
    switch (request->stage) {
    case REQUEST_READING:
        if (*upload_len > 0) {
            const size_t len = *upload_len;

            *upload_len = 0;
            return take_body(request, upload, len);
        }
        return complete(request);
    case REQUEST_WAITING:
        return send_answer(request);
    case REQUEST_HANDLED:
    case REQUEST_ANSWERED:
        break;
    }
    *upload_len = 0;
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct server *server = cls;
    struct request *request = *con_cls;

    (void)conn;
    (void)why;
    if (request) {
        *con_cls = NULL;
        set_phase(request, CONNECTION_IDLE);
        request_free(server, request);
    }
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *server = cls;
    struct connection *connection = *socket_context;

    switch (what) {
    case MHD_CONNECTION_NOTIFY_STARTED: {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);

        *socket_context =
            info ? connection_create(&server->connections, (int)info->connect_fd, clock_mono_ms())
                 : NULL;
        return;
    }
    case MHD_CONNECTION_NOTIFY_CLOSED:
        connection_destroy(&server->connections, &connection);
        *socket_context = NULL;
        return;
    }
}

/* The library's own limit counts per listener. */
static enum MHD_Result may_connect(void *cls, const struct sockaddr *address, socklen_t len)
{
    const struct server *server = cls;

    (void)address;
    (void)len;
    return server->connections.count < server->api->settings->http_max_connections ? MHD_YES
                                                                                   : MHD_NO;
}

/* It tells of every client that went away in the middle: nothing that a person must know. */
static __attribute__((format(printf, 2, 0))) void on_library_log(void *cls, const char *format,
                                                                 va_list args)
{
    char text[256];

    (void)cls;
    if (!log_wants(LOG_LEVEL_DEBUG)) {
        return;
    }
    (void)vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    log_debug("the HTTP library says", "text", text);
}

/* Names are taken as they stand in the path: `%2F` in one is three characters, not a slash. */
static size_t keep_path(void *cls, struct MHD_Connection *conn, char *text)
{
    (void)cls;
    (void)conn;
    return strlen(text);
}

/* ---- deadlines and draining ---- */

static void on_expire(uv_timer_t *timer)
{
    struct server *server = timer->data;
    const int64_t now = clock_mono_ms();

    connections_expire(&server->connections, now);
    if (!server->is_draining) {
        return;
    }
    if (now >= server->cut_idle_ms) {
        connections_cut_idle(&server->connections);
    }
    if ((server->connections.count == 0 || now >= server->drain_deadline_ms) && server->drained) {
        void (*drained)(void *arg) = server->drained;

        server->drained = NULL;
        drained(server->drained_arg);
    }
}

void server_drain(struct server *server, bool close_listeners, int64_t idle_ms, int64_t deadline_ms,
                  void (*done)(void *arg), void *arg)
{
    const int64_t cut_idle_ms = clock_mono_ms() + idle_ms;

    if (!server->is_draining || cut_idle_ms < server->cut_idle_ms) {
        server->cut_idle_ms = cut_idle_ms;
    }
    if (!server->is_draining) {
        server->is_draining = true;
        for (uint32_t i = 0; i < server->listener_count; i++) {
            MHD_quiesce_daemon(server->listeners[i].daemon);
        }
    }
    if (close_listeners) {
        for (uint32_t i = 0; i < server->listener_count; i++) {
            if (server->listeners[i].fd >= 0) {
                close(server->listeners[i].fd);
                server->listeners[i].fd = -1;
            }
        }
    }
    server->drain_deadline_ms = clock_mono_ms() + deadline_ms;
    server->drained = done;
    server->drained_arg = arg;
}

/* ---- start and end ---- */

static int start_listener(struct server *server, int fd)
{
    const struct settings *settings = server->api->settings;
    struct listener *listener = &server->listeners[server->listener_count];
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    listener->server = server;
    listener->fd = fd;
    listener->daemon = MHD_start_daemon(
        flags, 0, may_connect, server, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
        on_library_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        settings->http_max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        settings->http_max_connections_per_address, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_path, server, MHD_OPTION_END);
    if (!listener->daemon) {
        return -EIO;
    }
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    if (!info || epoll_filter_add(info->epoll_fd) < 0) {
        MHD_stop_daemon(listener->daemon);
        return -EIO;
    }
    listener->epoll_fd = info->epoll_fd;
    uv_poll_init(server->api->loop, &listener->poll, info->epoll_fd);
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
    uv_timer_init(server->api->loop, &listener->timer);
    listener->timer.data = listener;
    server->listener_count++;
    return 0;
}

int server_create(struct api *api, struct server **ret)
{
    const struct settings *settings = api->settings;
    struct server *server = calloc(1, sizeof(*server));

    if (!server) {
        return -ENOMEM;
    }
    server->api = api;
    server->body_max = settings->max_text_bytes * 3 + BODY_ALLOWANCE;
    connections_set_limits(&server->connections, settings->http_header_timeout,
                           settings->http_body_timeout, IDLE_MS, WRITING_MS);
    uv_check_init(api->loop, &server->check);
    server->check.data = server;
    uv_check_start(&server->check, on_check);
    uv_idle_init(api->loop, &server->idle);
    uv_timer_init(api->loop, &server->expire);
    server->expire.data = server;
    uv_timer_start(&server->expire, on_expire, EXPIRE_EVERY_MS, EXPIRE_EVERY_MS);
    *ret = server;
    return 0;
}

int server_listen(struct server *server, const int *fds, uint32_t count)
{
    int err = 0;

    for (uint32_t i = 0; i < count && err == 0 && !server->is_draining; i++) {
        err = start_listener(server, fds[i]);
    }
    return err;
}

void server_close(struct server *server)
{
    if (!server || server->is_closed) {
        return;
    }
    server->is_closed = true;
    for (uint32_t i = 0; i < server->listener_count; i++) {
        struct listener *listener = &server->listeners[i];

        epoll_filter_remove(listener->epoll_fd);
        uv_close((uv_handle_t *)&listener->poll, NULL);
        uv_close((uv_handle_t *)&listener->timer, NULL);
        MHD_stop_daemon(listener->daemon);
    }
    uv_close((uv_handle_t *)&server->check, NULL);
    uv_close((uv_handle_t *)&server->idle, NULL);
    uv_close((uv_handle_t *)&server->expire, NULL);
}

void server_destroy(struct server **server_ptr)
{
    struct server *server = *server_ptr;

    if (!server) {
        return;
    }
    *server_ptr = NULL;
    while (server->free) {
        struct request *request = server->free;

        server->free = request->next_free;
        buf_done(&request->body);
        buf_done(&request->out);
        free(request);
    }
    free(server);
}

struct api *server_api(const struct server *server)
{
    return server->api;
}

uint32_t server_connection_count(const struct server *server)
{
    return server->connections.count;
}
