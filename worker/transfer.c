/* Requests on libcurl. Handles are kept and used again; each transfer owns its headers and what it
 * read. */
#include "worker/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/core/buf.h"
#include "worker/address_rules.h"
#include "worker/curl_options.h"
#include "worker/curl_uv.h"

/* Of all heads of an answer, those before the final one and trailers included. */
#define HEADER_BYTES_MAX 65536
#define HEADER_LINES_MAX 512
#define HANDLES_KEPT_MAX 1024

struct transfers {
    struct uv_loop_s *loop;
    struct curl_uv *bridge;
    struct transfer_limits limits;
    const struct address_rules *rules;
    struct transfer *idle; /* list of handles that wait for work */
    uint32_t idle_count;
    transfer_observer_cb *observer;
    void *observer_arg;
    /* By local port, the descriptor of the connection that was kept last, and 1; 0: none. It may be
     * gone, and something else in its place: good enough for a doubt, which costs a connection. */
    int kept[UINT16_MAX + 1];
};

struct transfer {
    struct transfers *owner;
    struct transfer *next_idle;
    CURL *easy;
    uv_timer_t first_byte; /* lives as long as the handle */
    struct curl_slist *headers;
    struct buf body;
    size_t header_bytes, header_lines;
    uint32_t requests; /* how often libcurl was about to write one */
    /* Addresses that it was about to connect to. */
    uint32_t permitted, refused;
    bool is_too_late, is_body_limit, is_header_limit, is_silent;
    bool is_head_over;     /* the blank line behind the headers came */
    bool is_stale;         /* its connection held an answer to nothing, or had ended */
    bool is_set_for_posts; /* its options are those of any POST without credentials */
    int64_t began_mono_ms, first_byte_timeout_ms;
    const char *target;
    struct span subject;
    bool is_lookup;
    char failure[CURL_ERROR_SIZE];
    bool (*may_start)(void *arg);
    void (*started)(void *arg);
    transfer_done_cb *done;
    void *arg;
};

/* Called for each address before it is connected: what a name resolves to is looked at here, where
 * nothing can change it any more. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = arg;

    (void)purpose;
    if (!address_rules_permit_socket(transfer->owner->rules, &address->addr)) {
        transfer->refused++;
        return CURL_SOCKET_BAD; /* the next address is tried */
    }
    transfer->permitted++;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool is_refused_address(const struct transfer *transfer)
{
    return transfer->refused > 0 && transfer->permitted == 0;
}

static void on_silence(uv_timer_t *timer)
{
    struct transfer *transfer = timer->data;
    curl_off_t first_byte_us = 0;

    /* The first line may still be incomplete. */
    curl_easy_getinfo(transfer->easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
    if (first_byte_us > 0) {
        return;
    }
    transfer->is_silent = true;
    curl_uv_give_up(transfer->owner->bridge, transfer->easy);
}

static void await_first_byte(struct transfer *transfer)
{
    if (transfer->first_byte_timeout_ms > 0) {
        uv_timer_start(&transfer->first_byte, on_silence, (uint64_t)transfer->first_byte_timeout_ms,
                       0);
    }
}

/* Whether a connection that was kept holds bytes that nobody asked for (a target that answers
 * twice): they would pass for the answer to this request. libcurl itself looks before 8.0 only for
 * an end. */
static bool is_stale(const struct transfer *transfer, uint16_t local_port)
{
    const int kept = transfer->owner->kept[local_port];
    char byte;

    /* On a new one the tickets of TLS may be waiting. */
    return transfer->permitted == 0 && kept > 0 &&
           recv(kept - 1, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Called before each request that libcurl writes, also for one it repeats by itself on a new
 * connection: the first may go, a second never. It also sees the address of a connection that is
 * used again. */
static int on_request(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct transfer *transfer = arg;

    (void)local_ip;
    (void)remote_port;
    if (transfer->requests == 0 && !address_rules_permit(transfer->owner->rules, remote_ip)) {
        transfer->refused++;
        transfer->permitted = 0;
        return CURL_PREREQFUNC_ABORT;
    }
    if (is_stale(transfer, (uint16_t)local_port)) {
        transfer->is_stale = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (transfer->requests == 0 && transfer->may_start && !transfer->may_start(transfer->arg)) {
        transfer->is_too_late = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (transfer->requests++ > 0) {
        return CURL_PREREQFUNC_ABORT;
    }
    await_first_byte(transfer);
    if (transfer->started) {
        transfer->started(transfer->arg);
    }
    return CURL_PREREQFUNC_OK;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    const size_t len = size * count;

    if (buf_append(&transfer->body, bytes, len) < 0) {
        transfer->is_body_limit = true;
        return 0; /* enough was read; the status line decides */
    }
    return len;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    const size_t len = size * count;

    uv_timer_stop(&transfer->first_byte);
    /* A 1xx answer has a head of its own. Behind the body trailers may come, without a blank line.
     */
    if (len >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        transfer->is_head_over = false;
    } else if (len > 0 && (bytes[0] == '\r' || bytes[0] == '\n')) {
        transfer->is_head_over = true;
    }
    transfer->header_bytes += len;
    if (transfer->header_bytes > HEADER_BYTES_MAX || ++transfer->header_lines > HEADER_LINES_MAX) {
        transfer->is_header_limit = true;
        return 0; /* what the status line said holds */
    }
    return len;
}

static const char *header(CURL *easy, const char *name)
{
    struct curl_header *found;

    return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value
                                                                                  : NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void transfer_free(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    uv_close((uv_handle_t *)&transfer->first_byte, on_timer_closed);
}

static void recycle(struct transfer *transfer)
{
    struct transfers *owner = transfer->owner;

    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    buf_done(&transfer->body);
    if (owner->idle_count >= HANDLES_KEPT_MAX) {
        transfer_free(transfer);
        return;
    }
    transfer->next_idle = owner->idle;
    owner->idle = transfer;
    owner->idle_count++;
}

static const char *failure_text(const struct transfer *transfer, CURLcode code)
{
    if (is_refused_address(transfer)) {
        return "the target's address is not permitted (settings targets.allow, targets.deny)";
    }
    if (transfer->is_too_late) {
        return "the connection took so long that the request was not started";
    }
    if (transfer->is_body_limit) {
        return "the answer is longer than max_response_bytes";
    }
    if (transfer->is_header_limit) {
        return "the answer has too many headers";
    }
    if (transfer->is_silent) {
        return "nothing was answered within first_byte_timeout";
    }
    if (code == CURLE_OK) {
        return transfer->is_head_over ? "" : "the answer broke off in its headers";
    }
    return transfer->failure[0] ? transfer->failure : curl_easy_strerror(code);
}

static void tell_observer(const struct transfer *transfer, const struct transfer_result *result)
{
    const struct transfers *owner = transfer->owner;
    const struct transfer_report report = {
        .target = transfer->target,
        .subject = transfer->subject,
        .is_lookup = transfer->is_lookup,
        .began_mono_ms = transfer->began_mono_ms,
        .result = result,
    };

    if (owner->observer && transfer->target) {
        owner->observer(&report, owner->observer_arg);
    }
}

/* Its connection, if libcurl keeps that for others. */
static void note_kept(struct transfer *transfer, curl_socket_t fd)
{
    long port = 0;

    if (fd != CURL_SOCKET_BAD &&
        curl_easy_getinfo(transfer->easy, CURLINFO_LOCAL_PORT, &port) == CURLE_OK) {
        transfer->owner->kept[(uint16_t)port] = fd + 1;
    }
}

/* Once, on a connection of its own: nothing was sent. */
static bool start_afresh(struct transfer *transfer)
{
    if (!transfer->is_stale) {
        return false;
    }
    transfer->is_stale = false;
    transfer->is_set_for_posts = false;
    curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
    return curl_uv_add(transfer->owner->bridge, transfer->easy) == 0;
}

static void on_done(CURL *easy, CURLcode code, curl_socket_t fd, void *arg)
{
    struct transfer *transfer = NULL;
    long status = 0;
    char *content_type = NULL;

    (void)arg;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &content_type);
    note_kept(transfer, fd);
    if (start_afresh(transfer)) {
        return;
    }
    const struct transfer_result result = {
        .is_started = transfer->requests > 0,
        /* 1xx is no final answer. */
        .status = status >= 200 ? (int)status : 0,
        /* To libcurl an answer that breaks off in its headers is one without a body. */
        .is_complete = code == CURLE_OK && transfer->is_head_over,
        .is_too_long = transfer->is_body_limit,
        .is_refused_address = is_refused_address(transfer),
        .is_too_late = transfer->is_too_late,
        .body = {transfer->body.bytes ? transfer->body.bytes : "", transfer->body.len},
        .content_type = content_type,
        .retry_after = header(easy, "Retry-After"),
        .etag = header(easy, "ETag"),
        .next_cursor = header(easy, "X-Next-Cursor"),
        .failure = failure_text(transfer, code),
    };

    uv_timer_stop(&transfer->first_byte);
    tell_observer(transfer, &result);
    transfer->done(&result, transfer->arg);
    recycle(transfer);
}

static struct transfer *new_handle(struct transfers *owner)
{
    struct transfer *transfer = calloc(1, sizeof(*transfer));

    if (!transfer) {
        return NULL;
    }
    transfer->easy = curl_easy_init();
    if (!transfer->easy) {
        free(transfer);
        return NULL;
    }
    uv_timer_init(owner->loop, &transfer->first_byte);
    transfer->first_byte.data = transfer;
    return transfer;
}

static struct transfer *take_handle(struct transfers *owner)
{
    struct transfer *transfer = owner->idle;

    if (transfer) {
        owner->idle = transfer->next_idle;
        owner->idle_count--;
    } else {
        transfer = new_handle(owner);
    }
    return transfer;
}

/* Whatever an earlier request left behind is gone. */
static void prepare(struct transfer *transfer, struct transfers *owner,
                    const struct transfer_request *request)
{
    transfer->owner = owner;
    transfer->next_idle = NULL;
    transfer->header_bytes = transfer->header_lines = 0;
    transfer->requests = transfer->permitted = transfer->refused = 0;
    transfer->is_too_late = transfer->is_body_limit = false;
    transfer->is_header_limit = transfer->is_silent = false;
    transfer->is_head_over = transfer->is_stale = false;
    transfer->began_mono_ms = clock_mono_ms();
    transfer->first_byte_timeout_ms = request->first_byte_timeout_ms;
    transfer->target = request->target;
    transfer->subject = request->subject;
    transfer->is_lookup = request->is_lookup;
    transfer->failure[0] = '\0';
    buf_init(&transfer->body, request->max_response_bytes > 0 ? request->max_response_bytes
                                                              : owner->limits.max_response_bytes);
}

static bool is_method(const struct transfer_request *request, const char *method)
{
    return strcmp(request->method, method) == 0;
}

/* What every request of ours has. Mostly a POST follows a POST: then all of it stands already, and
 * what differs is set anyway. */
static void set_rules(struct transfer *transfer, const struct transfer_request *request)
{
    CURL *easy = transfer->easy;
    const bool is_post =
        !is_method(request, "GET") && !is_method(request, "HEAD") && !request->username;

    if (is_post && transfer->is_set_for_posts) {
        return;
    }
    curl_easy_reset(easy);
    transfer->is_set_for_posts = is_post;
    curl_options_set(easy, &transfer->owner->limits);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->failure);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
}

static int set_headers(struct transfer *transfer, const struct transfer_request *request)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");

    for (size_t i = 0; list && i < request->header_count; i++) {
        struct curl_slist *longer = curl_slist_append(list, request->headers[i]);

        if (!longer) {
            curl_slist_free_all(list);
        }
        list = longer;
    }
    if (!list) {
        return -ENOMEM;
    }
    transfer->headers = list;
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, list);
    return 0;
}

static void set_method(struct transfer *transfer, const struct transfer_request *request)
{
    CURL *easy = transfer->easy;

    if (is_method(request, "GET")) {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    } else if (is_method(request, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.len > 0 ? request->body.ptr : "");
    }
    if (request->username) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(easy, CURLOPT_USERNAME, request->username);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, request->password ? request->password : "");
    }
}

int transfer_start(struct transfers *transfers, const struct transfer_request *request,
                   void (*started)(void *arg), transfer_done_cb *done, void *arg)
{
    if (!curl_options_accept_url(request->url)) {
        return -EINVAL;
    }
    struct transfer *transfer = take_handle(transfers);
    int err;

    if (!transfer) {
        return -ENOMEM;
    }
    prepare(transfer, transfers, request);
    transfer->may_start = request->may_start;
    transfer->started = started;
    transfer->done = done;
    transfer->arg = arg;
    set_rules(transfer, request);
    set_method(transfer, request);
    curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    err = curl_easy_setopt(transfer->easy, CURLOPT_URL, request->url) == CURLE_OK ? 0 : -ENOMEM;
    if (err == 0) {
        err = set_headers(transfer, request);
    }
    if (err == 0) {
        err = curl_uv_add(transfers->bridge, transfer->easy);
    }
    if (err < 0) {
        recycle(transfer);
    }
    return err;
}

int transfers_create(struct uv_loop_s *loop, const struct transfer_limits *limits,
                     const struct address_rules *rules, struct transfers **ret)
{
    struct transfers *transfers = calloc(1, sizeof(*transfers));
    int err;

    if (!transfers) {
        return -ENOMEM;
    }
    transfers->loop = loop;
    transfers->limits = *limits;
    transfers->rules = rules;
    err = curl_uv_create(loop, on_done, transfers, &transfers->bridge);
    if (err < 0) {
        free(transfers);
        return err;
    }
    curl_multi_setopt(curl_uv_multi(transfers->bridge), CURLMOPT_MAXCONNECTS,
                      (long)limits->max_connections);
    curl_multi_setopt(curl_uv_multi(transfers->bridge), CURLMOPT_PIPELINING,
                      (long)CURLPIPE_NOTHING);
    *ret = transfers;
    return 0;
}

void transfers_observe(struct transfers *transfers, transfer_observer_cb *observer, void *arg)
{
    transfers->observer = observer;
    transfers->observer_arg = arg;
}

void transfers_destroy(struct transfers **transfers_ptr)
{
    struct transfers *transfers = *transfers_ptr;

    if (!transfers) {
        return;
    }
    *transfers_ptr = NULL;
    while (transfers->idle) {
        struct transfer *transfer = transfers->idle;

        transfers->idle = transfer->next_idle;
        transfer_free(transfer);
    }
    curl_uv_destroy(&transfers->bridge);
    free(transfers);
}
