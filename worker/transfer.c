/* Requests on libcurl. Handles are kept and used again; each transfer owns its headers and what it
 * read. */
#include "worker/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/core/buf.h"
#include "worker/address_rules.h"
#include "worker/curl_uv.h"

#define IDLE_CONNECTION_S                                                                          \
    5L /* one that was idle for longer may be dead: not used again (contract §4) */
#define HEADER_BYTES_MAX 65536
#define HANDLES_KEPT_MAX 1024

struct transfers {
    struct curl_uv *bridge;
    struct transfer_limits limits;
    const struct address_rules *rules;
    struct transfer *idle; /* list of handles that wait for work */
    uint32_t idle_count;
};

struct transfer {
    struct transfers *owner;
    struct transfer *next_idle;
    CURL *easy;
    struct curl_slist *headers;
    struct buf body;
    size_t header_bytes;
    uint32_t requests; /* how often libcurl was about to write one */
    bool is_refused_address, is_too_late, is_body_limit;
    bool is_head_over; /* the blank line behind the headers came */
    char failure[CURL_ERROR_SIZE];
    bool (*may_start)(void *arg);
    void (*started)(void *arg);
    transfer_done_cb *done;
    void *arg;
};

/* Called before each request that libcurl writes, also for one it repeats by itself on a new
 * connection: the first may go, a second never. Also the only place that sees the connected
 * address. */
static int on_request(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct transfer *transfer = arg;

    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (transfer->requests == 0 && !address_rules_permit(transfer->owner->rules, remote_ip)) {
        transfer->is_refused_address = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (transfer->requests == 0 && transfer->may_start && !transfer->may_start(transfer->arg)) {
        transfer->is_too_late = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (transfer->requests++ > 0) {
        return CURL_PREREQFUNC_ABORT;
    }
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

    /* Also that of a 1xx answer, which a status line follows then. */
    transfer->is_head_over = len > 0 && (bytes[0] == '\r' || bytes[0] == '\n');
    transfer->header_bytes += len;
    return transfer->header_bytes > HEADER_BYTES_MAX ? 0 : len;
}

static const char *header(CURL *easy, const char *name)
{
    struct curl_header *found;

    return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value
                                                                                  : NULL;
}

static void recycle(struct transfer *transfer)
{
    struct transfers *owner = transfer->owner;

    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    buf_done(&transfer->body);
    if (owner->idle_count >= HANDLES_KEPT_MAX) {
        curl_easy_cleanup(transfer->easy);
        free(transfer);
        return;
    }
    curl_easy_reset(transfer->easy);
    transfer->next_idle = owner->idle;
    owner->idle = transfer;
    owner->idle_count++;
}

static const char *failure_text(const struct transfer *transfer, CURLcode code)
{
    if (transfer->is_refused_address) {
        return "the target's address is not permitted (settings targets.allow, targets.deny)";
    }
    if (transfer->is_too_late) {
        return "the connection took so long that the request was not started";
    }
    if (transfer->is_body_limit) {
        return "the answer is longer than max_response_bytes";
    }
    if (code == CURLE_OK) {
        return transfer->is_head_over ? "" : "the answer broke off in its headers";
    }
    return transfer->failure[0] ? transfer->failure : curl_easy_strerror(code);
}

static void on_done(CURL *easy, CURLcode code, void *arg)
{
    struct transfer *transfer = NULL;
    long status = 0;
    char *content_type = NULL;

    (void)arg;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &content_type);
    const struct transfer_result result = {
        .is_started = transfer->requests > 0,
        /* 1xx is no final answer. */
        .status = status >= 200 ? (int)status : 0,
        /* To libcurl an answer that breaks off in its headers is one without a body. */
        .is_complete = code == CURLE_OK && transfer->is_head_over,
        .is_too_long = transfer->is_body_limit,
        .is_refused_address = transfer->is_refused_address,
        .is_too_late = transfer->is_too_late,
        .body = {transfer->body.bytes ? transfer->body.bytes : "", transfer->body.len},
        .content_type = content_type,
        .retry_after = header(easy, "Retry-After"),
        .etag = header(easy, "ETag"),
        .next_cursor = header(easy, "X-Next-Cursor"),
        .failure = failure_text(transfer, code),
    };

    transfer->done(&result, transfer->arg);
    recycle(transfer);
}

static struct transfer *take_handle(struct transfers *owner)
{
    struct transfer *transfer = owner->idle;
    CURL *easy;

    if (transfer) {
        owner->idle = transfer->next_idle;
        owner->idle_count--;
        easy = transfer->easy;
    } else {
        transfer = malloc(sizeof(*transfer));
        easy = transfer ? curl_easy_init() : NULL;
        if (!easy) {
            free(transfer);
            return NULL;
        }
    }
    *transfer = (struct transfer){.owner = owner, .easy = easy};
    buf_init(&transfer->body, owner->limits.max_response_bytes);
    return transfer;
}

/* What every request of ours has; curl_easy_reset undid it. Nothing comes from the environment. */
static void set_rules(struct transfer *transfer)
{
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->failure);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* as the template made it */
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_CONNECTION_S);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)transfer->owner->limits.connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "outboxd");
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

    if (strcmp(request->method, "GET") == 0) {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    } else if (strcmp(request->method, "HEAD") == 0) {
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
    struct transfer *transfer = take_handle(transfers);
    int err;

    if (!transfer) {
        return -ENOMEM;
    }
    transfer->may_start = request->may_start;
    transfer->started = started;
    transfer->done = done;
    transfer->arg = arg;
    if (request->max_response_bytes > 0) {
        buf_init(&transfer->body, request->max_response_bytes);
    }
    set_rules(transfer);
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
        curl_easy_cleanup(transfer->easy);
        free(transfer);
    }
    curl_uv_destroy(&transfers->bridge);
    free(transfers);
}
