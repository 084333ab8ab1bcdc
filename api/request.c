/* Builds answers. */
#include "api/request.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/head.h"
#include "api/limits.h"
#include "api/server.h"
#include "common/access/token_table.h"
#include "common/base/log.h"
#include "common/store/store_conn.h"

#define TRACEPARENT_MAX 128
#define STREAM_BLOCK    1024 /* for clients that know no chunks; others are given what fits */

struct api *api_of(const struct request *request)
{
    return server_api(request->server);
}

static struct span look_up(const struct request *request, enum MHD_ValueKind kind, const char *name)
{
    const char *value = NULL;
    size_t len = 0;

    if (MHD_lookup_connection_value_n(request->conn, kind, name, strlen(name), &value, &len) !=
        MHD_YES) {
        return (struct span){0};
    }
    return (struct span){value ? value : "", value ? len : 0};
}

struct span request_header(const struct request *request, const char *name)
{
    return look_up(request, MHD_HEADER_KIND, name);
}

struct span request_traceparent(const struct request *request)
{
    const struct span value = request_header(request, "traceparent");

    return value.len <= TRACEPARENT_MAX ? value : (struct span){0};
}

struct span request_query(const struct request *request, const char *name)
{
    return look_up(request, MHD_GET_ARGUMENT_KIND, name);
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool request_query_text(const struct request *request, const char *name, char *room, size_t cap,
                        struct span *ret)
{
    const struct span raw = request_query(request, name);
    size_t len = 0;

    if (!raw.ptr) {
        return true;
    }
    for (size_t i = 0; i < raw.len; i++) {
        const bool is_escape = raw.ptr[i] == '%' && i + 2 < raw.len &&
                               hex_of(raw.ptr[i + 1]) >= 0 && hex_of(raw.ptr[i + 2]) >= 0;

        if (len == cap) {
            return false;
        }
        room[len++] =
            (char)(is_escape ? hex_of(raw.ptr[i + 1]) << 4 | hex_of(raw.ptr[i + 2]) : raw.ptr[i]);
        i += is_escape ? 2 : 0;
    }
    *ret = (struct span){room, len};
    return true;
}

bool request_is_trusted(const struct request *request)
{
    return !api_of(request)->tokens || request->caller;
}

bool request_may_see(const struct request *request, struct span workspace)
{
    return !api_of(request)->tokens ||
           (request->caller && access_token_may_touch(request->caller, workspace));
}

void request_answer_header(struct request *request, const char *name, const char *value)
{
    if (request->response) {
        (void)MHD_add_response_header(request->response, name,
                                      value); /* fails without memory only: then without it */
    }
}

static void answer(struct request *request, unsigned status, const char *content_type,
                   struct MHD_Response *response)
{
    request->status = status;
    request->response = response;
    if (response && content_type) {
        request_answer_header(request, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    }
    if (response) {
        head_add_to_answer(request);
    }
    server_answered(request);
}

void request_answer(struct request *request, unsigned status, const char *content_type,
                    struct span bytes)
{
    /* The library takes a plain pointer but only reads when told to copy. */
    answer(request, status, content_type,
           MHD_create_response_from_buffer(bytes.len, (void *)(uintptr_t)bytes.ptr,
                                           MHD_RESPMEM_MUST_COPY));
}

void request_answer_out(struct request *request, unsigned status, const char *content_type)
{
    size_t len = 0;

    if (request->out.failed) {
        const size_t max = request->out.max; /* the buffer serves later requests too */

        buf_done(&request->out);
        buf_init(&request->out, max);
        request_problem(request, PROBLEM_INTERNAL, (struct span){0});
        return;
    }
    if (request->out.len <= 2048) {
        request_answer(request, status, content_type,
                       (struct span){request->out.bytes, request->out.len});
        return;
    }
    char *bytes = buf_steal(&request->out, &len);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);

    if (!response) {
        free(bytes);
    }
    answer(request, status, content_type, response);
}

/* The library calls this whenever the connection can take more. With nothing to give, the
 * connection is suspended (an answer of 0 alone would be asked for again and again). */
static ssize_t on_stream(void *arg, uint64_t position, char *out, size_t max)
{
    struct request *request = arg;
    const int64_t len = request->stream.read(request->stream.arg, out, max);

    (void)position;
    if (len < 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    request->stream.is_waiting = len == 0;
    server_streams(request, len == 0);
    return (ssize_t)len;
}

void request_answer_stream(struct request *request, unsigned status, const char *content_type)
{
    server_stream_begins(request);
    answer(request, status, content_type,
           MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_stream, request,
                                             NULL));
}

void request_stream_wake(struct request *request)
{
    if (request->stream.is_waiting) {
        request->stream.is_waiting = false;
        server_resume(request);
    }
}

void request_stream_cut(struct request *request)
{
    server_cut(request);
    request_stream_wake(request);
}

void request_problem(struct request *request, enum problem_id problem, struct span detail)
{
    const struct problem *row = problem_get(problem);

    limits_count_problem(api_of(request)->metrics, problem);
    buf_reset(&request->out);
    problem_write(problem, detail, &request->out);
    request_answer(request, row->status, PROBLEM_CONTENT_TYPE,
                   (struct span){request->out.bytes, request->out.len});
    if (row->status == MHD_HTTP_TOO_MANY_REQUESTS || row->status == MHD_HTTP_SERVICE_UNAVAILABLE ||
        problem == PROBLEM_BUSY) {
        request_answer_header(request, MHD_HTTP_HEADER_RETRY_AFTER,
                              row->status == MHD_HTTP_SERVICE_UNAVAILABLE ? "1" : "5");
    }
}

enum problem_id request_problem_of_store(enum store_result result, struct span *ret_detail)
{
    if (result == STORE_FULL) {
        *ret_detail = (struct span){0};
        return PROBLEM_OVERLOADED;
    }
    *ret_detail = span_of(store_result_help(result));
    return PROBLEM_STORE_UNAVAILABLE;
}

void request_store_failed(struct request *request, enum store_result result)
{
    struct span detail;
    const enum problem_id problem = request_problem_of_store(result, &detail);

    request_problem(request, problem, detail);
}
