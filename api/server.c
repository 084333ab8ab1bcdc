/* A request is suspended while its handler waits for the store: the library then forgets the
 * connection, whatever the client does, and an accepted message goes its way although nobody is
 * left to hear the 202. */
#include "api/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/accept_outcome.h"
#include "api/api.h"
#include "api/connection.h"
#include "api/head.h"
#include "api/limits.h"
#include "api/listener.h"
#include "api/request.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"

#define CONNECTION_MEMORY (32U << 10) /* a head has to fit; beyond: the library's own 431 */
#define OUT_MAX           (512U << 20)
#define IDLE_MS           75000
#define WRITING_MS        60000
#define EXPIRE_EVERY_MS   100
#define FREE_REQUESTS_MAX 256
#define DROPPED_BODY_MAX  (1U << 20)  /* read and dropped before the connection is given up */
#define BODIES_MAX        (64U << 20) /* kept of all bodies that come in at one time, */
#define BODIES_AT_LEAST   4           /* or so many of the longest */

struct server {
    struct api *api;
    struct listeners *listeners;
    struct connections connections;
    size_t bodies_max;
    size_t bodies_kept; /* bytes of all requests that come in or are at work */
    uv_timer_t expire;
    bool is_draining, is_closed;
    int64_t drain_deadline_ms, cut_idle_ms;
    void (*drained)(void *arg);
    void *drained_arg;
    struct request *free;
    uint32_t free_count;
};

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
        buf_init(&request->body, 0);
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
    server->bodies_kept -= request->body_kept;
    request->body_kept = 0;
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

static void drop_body(struct request *request)
{
    const size_t max = request->body.max; /* the buffer serves later requests too */

    request->server->bodies_kept -= request->body_kept;
    request->body_kept = 0;
    buf_done(&request->body);
    buf_init(&request->body, max);
}

/* What each may send is little; what all of them send at once need not be. */
static void keep_body(struct request *request, const char *bytes, size_t len)
{
    struct server *server = request->server;
    const bool is_too_much = server->bodies_kept + len > server->bodies_max;

    if (!is_too_much && buf_append(&request->body, bytes, len) == 0) {
        request->body_kept += len;
        server->bodies_kept += len;
        return;
    }
    request->early = is_too_much ? PROBLEM_TOO_MANY_BODIES : PROBLEM_TOO_LARGE;
    drop_body(request);
}

/* MHD_NO: the connection ends. Whoever sends on and on is not listened to for ever, but told why.
 */
static enum MHD_Result take_body(struct request *request, const char *bytes, size_t len)
{
    struct server *server = request->server;

    request->body_seen += len;
    if (request->body_seen > (uint64_t)request->body.max + DROPPED_BODY_MAX) {
        if (request->connection) {
            connection_cut(&server->connections, request->connection, PROBLEM_TOO_LARGE);
        }
        return MHD_NO;
    }
    if (request->early != PROBLEM_NONE || !route_content_type(request->route)) {
        return MHD_YES;
    }
    keep_body(request, bytes, len);
    return MHD_YES;
}

static void answer_early(struct request *request)
{
    if (route_is_accept(request->route)) {
        metrics_add(request->server->api->metrics, METRIC_accepts_total,
                    accept_label_of_problem(request->early), 1);
    }
    head_answer(request);
}

typedef void route_handler(struct api *api, struct request *request);

static void handle(struct request *request)
{
    static route_handler *const handlers[ROUTE_COUNT] = {
#define ROUTE(id, method, pattern, body, access, handler, label) [ROUTE_##id] = handler,
#include "api/routes.def"
    };

    handlers[request->route](request->server->api,
                             request); /* head_judge let no other number pass */
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
    listeners_run_soon(request->server->listeners);
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
    if (request->early != PROBLEM_NONE || request->is_preflight) {
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
        head_judge(request, method, url);
        request->body.max = head_body_max(server->api->settings, request->route);
        if (head_is_refused_at_once(request->early)) {
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

        const union MHD_ConnectionInfo *peer =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

        *socket_context =
            info && peer ? connection_create(&server->connections, (int)info->connect_fd,
                                             listener_tls(conn), peer->client_addr, clock_mono_ms())
                         : NULL;
        return;
    }
    case MHD_CONNECTION_NOTIFY_CLOSED:
        connection_destroy(&server->connections, &connection);
        *socket_context = NULL;
        return;
    }
}

static enum MHD_Result may_connect(void *cls, const struct sockaddr *address, socklen_t len)
{
    struct server *server = cls;

    return connections_may_come(&server->connections, len > 0 ? address : NULL) ? MHD_YES : MHD_NO;
}

/* The first line of a request is there. What is returned would be its con_cls. */
static void *on_first_line(void *cls, const char *uri, struct MHD_Connection *conn)
{
    struct server *server = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    (void)uri;
    if (info && info->socket_context) {
        connection_begins_request(&server->connections, info->socket_context, clock_mono_ms());
    }
    return NULL;
}

/* What the library refuses by itself (a head that does not fit into a connection's memory) it only
 * tells its log: the status is the first thing that this message is filled with. If it reads
 * otherwise one day, less is counted. */
static __attribute__((format(printf, 2, 0))) void count_refusal(const struct server *server,
                                                                const char *format, va_list args)
{
    static const char refusal[] = "Error processing request (HTTP response code is %u";
    va_list copy;

    if (strncmp(format, refusal, sizeof(refusal) - 1) != 0) {
        return;
    }
    va_copy(copy, args);
    const unsigned status = va_arg(copy, unsigned);

    va_end(copy);
    limits_count_status(server->api->metrics, status);
}

/* It tells of every client that went away in the middle: nothing that a person must know. */
static __attribute__((format(printf, 2, 0))) void on_library_log(void *cls, const char *format,
                                                                 va_list args)
{
    char text[256];

    count_refusal(cls, format, args);
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
        listeners_quiesce(server->listeners);
    }
    if (close_listeners) {
        listeners_close_sockets(server->listeners);
    }
    server->drain_deadline_ms = clock_mono_ms() + deadline_ms;
    server->drained = done;
    server->drained_arg = arg;
}

/* ---- start and end ---- */

static size_t bodies_max(const struct settings *settings)
{
    size_t longest = 0;

    for (unsigned route = 0; route < ROUTE_COUNT; route++) {
        const size_t max = head_body_max(settings, (enum route_id)route);

        longest = max > longest ? max : longest;
    }
    return longest > BODIES_MAX / BODIES_AT_LEAST ? longest * BODIES_AT_LEAST : BODIES_MAX;
}

int server_create(struct api *api, struct server **ret)
{
    const struct settings *settings = api->settings;
    const struct connection_limits limits = {
        .head_ms = settings->http_header_timeout,
        .body_ms = settings->http_body_timeout,
        .idle_ms = IDLE_MS,
        .writing_ms = WRITING_MS,
        .max = settings->http_max_connections,
        .max_per_address = settings->http_max_connections_per_address,
    };
    struct server *server = calloc(1, sizeof(*server));

    if (!server) {
        return -ENOMEM;
    }
    const struct listener_options options = {
        .loop = api->loop,
        .credentials = api->credentials,
        .connection_limit = settings->http_max_connections + CONNECTIONS_REFUSED_MAX,
        .connection_memory = CONNECTION_MEMORY,
        .may_connect = may_connect,
        .on_first_line = on_first_line,
        .on_request = on_request,
        .on_completed = on_completed,
        .on_connection = on_connection,
        .on_log = on_library_log,
        .keep_path = keep_path,
        .arg = server,
    };
    server->api = api;
    server->bodies_max = bodies_max(settings);
    connections_init(&server->connections, &limits, api->metrics);
    if (listeners_create(&options, &server->listeners) < 0) {
        free(server);
        return -ENOMEM;
    }
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
        err = listeners_add(server->listeners, fds[i], !server->api->tokens);
    }
    return err;
}

void server_close(struct server *server)
{
    if (!server || server->is_closed) {
        return;
    }
    server->is_closed = true;
    listeners_close(server->listeners);
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
    listeners_destroy(&server->listeners);
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
