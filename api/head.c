/* Looks at headers once, in the order in which they matter: what could be misread, then who calls,
 * then what they want. */
#include "api/head.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/auth.h"
#include "api/connection.h"
#include "api/origin.h"
#include "api/request.h"
#include "common/base/settings.h"

#define BODY_ALLOWANCE (16U << 10) /* of a body, beyond text, model and payload */
#define ALLOW_MAX      64

/* A page's own script may read these, beside the few that every one may. */
#define EXPOSED_HEADERS                                                                            \
    "Location, Outbox-Durability, Idempotent-Replay, Retry-After, WWW-Authenticate, Allow"
#define TAKEN_HEADERS "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, traceparent"

size_t head_body_max(const struct settings *settings, enum route_id route)
{
    if (route == ROUTE_BATCH) {
        return settings->batch_max_bytes;
    }
    return settings->max_text_bytes * 3 + BODY_ALLOWANCE;
}

/* ---- one look at the headers ---- */

struct headers {
    unsigned lengths, encodings, hosts, origins;
    bool has_bad_name, has_bad_encoding;
    struct auth_headers auth;
    struct span host, origin;
};

static bool is_called(const char *name, const char *wanted)
{
    return strcasecmp(name, wanted) == 0;
}

/* RFC 9110 §5.6.2. The library takes a blank before the colon for part of the name: a proxy before
 * us may have read the name without it. */
static bool is_token(const char *name, size_t len)
{
    static const char separators[] = "\"(),/:;<=>?@[\\]{}";

    for (size_t i = 0; i < len; i++) {
        if (name[i] <= ' ' || name[i] > '~' || strchr(separators, name[i])) {
            return false;
        }
    }
    return len > 0;
}

static enum MHD_Result look_at_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                      size_t name_len, const char *value, size_t value_len)
{
    struct headers *headers = cls;
    const struct span span = {value ? value : "", value ? value_len : 0};

    (void)kind;
    headers->has_bad_name |= !is_token(name, name_len);
    if (is_called(name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
        headers->lengths++;
    } else if (is_called(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        headers->encodings++;
        headers->has_bad_encoding |= !is_called(value ? value : "", "chunked");
    } else if (is_called(name, MHD_HTTP_HEADER_AUTHORIZATION)) {
        headers->auth.count++;
        headers->auth.authorization = span;
    } else if (is_called(name, MHD_HTTP_HEADER_HOST)) {
        headers->hosts++;
        headers->host = span;
    } else if (is_called(name, MHD_HTTP_HEADER_ORIGIN)) {
        headers->origins++;
        headers->origin = span;
    }
    return MHD_YES;
}

static bool is_head_too_large(const struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->conn, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info && info->header_size > HEAD_MAX;
}

/* ---- judging ---- */

/* Two lengths: a proxy before us may have gone by the other one, and what we took for the next
 * request would be part of a body (RFC 9112 §6.3). The library takes the first. Two hosts or
 * origins: the same doubt. */
static enum problem_id judge_form(const struct request *request, const struct headers *headers)
{
    if (headers->lengths + headers->encodings > 1 || headers->has_bad_encoding) {
        return PROBLEM_AMBIGUOUS_LENGTH;
    }
    if (is_head_too_large(request)) {
        return PROBLEM_HEADERS_TOO_LARGE;
    }
    return headers->has_bad_name || headers->hosts > 1 || headers->origins > 1
               ? PROBLEM_INVALID_HEADER
               : PROBLEM_NONE;
}

static enum problem_id judge_caller(struct request *request, const struct headers *headers)
{
    const struct api *api = api_of(request);
    const struct connection *connection = request->connection;
    const bool is_local_socket = connection && connection->peer->family == AF_UNIX;

    if (!api->tokens && !is_local_socket) {
        const enum problem_id problem =
            origin_judge(&api->settings->http_cors_origins, headers->origin, headers->host);

        if (problem != PROBLEM_NONE) {
            return problem;
        }
    }
    return auth_judge(api->tokens, &headers->auth, request->route, request->params.workspace,
                      &request->caller);
}

static enum problem_id judge_names(const struct route_params *params)
{
    const struct span workspace = params->workspace, session = params->session;
    const bool is_valid =
        (workspace.len == 0 || workspace_name_is_valid(workspace.ptr, workspace.len)) &&
        (session.len == 0 || session_name_is_valid(session.ptr, session.len));

    return is_valid ? PROBLEM_NONE : PROBLEM_INVALID_NAME;
}

static enum problem_id judge_body(const struct request *request)
{
    const struct span wanted = span_of(route_content_type(request->route));
    const struct span type = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    const struct span length = request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const bool is_wanted = type.len >= wanted.len &&
                           strncasecmp(type.ptr, wanted.ptr, wanted.len) == 0 &&
                           (type.len == wanted.len || strchr("; \t", type.ptr[wanted.len]));
    /* The library has checked that it is a number. */
    const unsigned long long announced = length.len > 0 ? strtoull(length.ptr, NULL, 10) : 0;

    if (announced > head_body_max(api_of(request)->settings, request->route)) {
        return PROBLEM_TOO_LARGE;
    }
    return is_wanted ? PROBLEM_NONE : PROBLEM_UNSUPPORTED_MEDIA_TYPE;
}

/* A browser asks what a page may send; it asks without a token. */
static bool is_preflight(const struct request *request, const char *method,
                         const struct headers *headers)
{
    return strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0 && request->allowed != 0 &&
           origin_is_listed(&api_of(request)->settings->http_cors_origins, headers->origin) &&
           request_header(request, MHD_HTTP_HEADER_ACCESS_CONTROL_REQUEST_METHOD).ptr;
}

static enum problem_id judge_request(struct request *request, const struct headers *headers)
{
    enum problem_id problem = judge_caller(request, headers);

    if (problem != PROBLEM_NONE) {
        return problem;
    }
    if (request->route == ROUTE_NONE) {
        return request->allowed ? PROBLEM_METHOD_NOT_ALLOWED : PROBLEM_NOT_FOUND;
    }
    problem = judge_names(&request->params);
    if (problem == PROBLEM_NONE && route_content_type(request->route)) {
        problem = judge_body(request);
    }
    return problem;
}

void head_judge(struct request *request, const char *method, const char *url)
{
    const struct route_match match = route_find(http_method_of(method), span_of(url));
    struct headers headers = {0};

    MHD_get_connection_values_n(request->conn, MHD_HEADER_KIND, look_at_header, &headers);
    request->route = match.route;
    request->params = match.params;
    request->allowed = match.allowed;
    request->is_from_listed_origin =
        origin_is_listed(&api_of(request)->settings->http_cors_origins, headers.origin);
    request->early = request->connection ? request->connection->refusal : PROBLEM_NONE;
    if (request->early == PROBLEM_NONE) {
        request->early = judge_form(request, &headers);
    }
    request->is_preflight =
        request->early == PROBLEM_NONE && is_preflight(request, method, &headers);
    if (request->early == PROBLEM_NONE && !request->is_preflight) {
        request->early = judge_request(request, &headers);
    }
}

bool head_is_refused_at_once(enum problem_id problem)
{
    return problem == PROBLEM_TOO_LARGE || problem == PROBLEM_AMBIGUOUS_LENGTH ||
           problem == PROBLEM_HEADERS_TOO_LARGE || problem == PROBLEM_INVALID_HEADER ||
           problem == PROBLEM_TOO_MANY_CONNECTIONS || problem == PROBLEM_TOO_MANY_FROM_ADDRESS;
}

/* ---- answering ---- */

static void write_allowed(unsigned allowed, char text[ALLOW_MAX])
{
    text[0] = '\0';
    for (unsigned method = 0; method < HTTP_METHOD_COUNT; method++) {
        if (allowed & 1U << method) {
            strncat(text, text[0] ? ", " : "", ALLOW_MAX - strlen(text) - 1);
            strncat(text, http_method_name((enum http_method)method), ALLOW_MAX - strlen(text) - 1);
        }
    }
}

static void answer_preflight(struct request *request)
{
    char allowed[ALLOW_MAX];

    write_allowed(request->allowed, allowed);
    request_answer(request, MHD_HTTP_NO_CONTENT, NULL, (struct span){"", 0});
    request_answer_header(request, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, allowed);
    request_answer_header(request, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS, TAKEN_HEADERS);
    request_answer_header(request, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
}

void head_answer(struct request *request)
{
    const char *challenge = auth_challenge(request->early);

    if (request->is_preflight) {
        answer_preflight(request);
        return;
    }
    request_problem(
        request, request->early,
        request->early == PROBLEM_INVALID_HEADER
            ? span_of("Host or Origin stands twice, or a header's name holds a blank or "
                      "another character that no name may hold")
            : (struct span){0});
    if (challenge) {
        request_answer_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, challenge);
    }
    if (request->early == PROBLEM_METHOD_NOT_ALLOWED) {
        char allowed[ALLOW_MAX];

        write_allowed(request->allowed, allowed);
        request_answer_header(request, MHD_HTTP_HEADER_ALLOW, allowed);
    }
}

/* What a browser must not do with an answer: guess its type, keep it, or let another site's page
 * embed it. Credentials of the browser's own (cookies) are none of ours, so pages are never allowed
 * to send them along. */
void head_add_to_answer(struct request *request)
{
    request_answer_header(request, "X-Content-Type-Options", "nosniff");
    request_answer_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    request_answer_header(request, "Cross-Origin-Resource-Policy", "same-origin");
    if (api_of(request)->settings->http_cors_origins.count == 0) {
        return;
    }
    request_answer_header(request, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
    if (request->is_from_listed_origin) {
        const struct span origin = request_header(request, MHD_HTTP_HEADER_ORIGIN);
        char value[256];

        (void)snprintf(value, sizeof(value), "%.*s", (int)origin.len, origin.ptr);
        request_answer_header(request, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, value);
        request_answer_header(request, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS,
                              EXPOSED_HEADERS);
    }
}
