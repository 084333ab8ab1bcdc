/* One HTTP request on its way through the API, and how it is answered. Contract §7.
 *
 * Life: the server makes it when the head is read, calls the route's handler when the body is
 * complete, and frees it when the HTTP library is done with it. While a handler waits for the store
 * the connection is suspended: the library does not look at it, so it can't end before the answer
 * is there, whatever the client does. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "api/problem.h"
#include "api/router.h"
#include "common/core/buf.h"
#include "common/core/keys.h"
#include "common/store/store_conn.h"

struct access_token;
struct MHD_Connection;
struct MHD_Response;
struct server;
struct api;

enum request_stage {
    REQUEST_READING, /* the body comes in */
    REQUEST_HANDLED, /* the handler has been called */
    REQUEST_WAITING, /* it waits: suspended */
    REQUEST_ANSWERED,
};

/* An answer without an end: its bytes are asked for as the client takes them. */
struct request_stream {
    /* At most `max` bytes: their number; 0: none now, request_stream_wake will be called;
     * <0: the stream ends. */
    int64_t (*read)(void *arg, char *out, size_t max);
    /* The request is over, whatever became of it; `is_cut`: by us, its client took too little.
     * NULL: no stream. */
    void (*done)(void *arg, bool is_cut);
    void *arg;
    bool is_waiting;
};

struct request {
    struct server *server;
    struct MHD_Connection *conn;
    struct connection *connection;
    enum request_stage stage;
    enum route_id route;
    struct route_params params; /* spans into the library's copy of the request line */
    struct buf body;
    uint64_t body_seen;    /* bytes that came, kept or not */
    enum problem_id early; /* decided before the body was read; PROBLEM_NONE: none */
    unsigned allowed;      /* for 405 */
    const struct access_token
        *caller;       /* whose token it shows; NULL: nobody's, or none is asked for */
    bool is_preflight; /* a browser asks what a page may send */
    bool is_from_listed_origin;
    size_t body_kept;    /* of server.c's account of all bodies */
    int64_t complete_ns; /* monotonic: when the request was complete */
    /* For handlers: what they need again when the store has answered. */
    struct buf out;
    char cmid[CMID_MAX];
    uint32_t cmid_len;
    char lane[SESSION_MAX];
    struct span session; /* of the entry: in the path or in `lane` */
    struct request_stream stream;
    uint32_t offset; /* lists: how far they came */
    uint32_t listed, limit, asked;
    void *context; /* of an operation that takes several steps: owned by its handler */
    struct MHD_Response *response;
    unsigned status;
    struct request *next_free;
};

/* The value of a request header; ptr NULL if absent. */
struct span request_header(const struct request *request, const char *name);

/* The header that goes on to the target; empty if absent, or too long to be one. */
struct span request_traceparent(const struct request *request);

/* The value of a parameter behind the `?`, as it stands there (not unescaped); ptr NULL if absent.
 */
struct span request_query(const struct request *request, const char *name);

/* The same decoded into `room`: broken escapes stand for themselves. False: it does not fit.
 * Absent: *ret stays. */
bool request_query_text(const struct request *request, const char *name, char *room, size_t cap,
                        struct span *ret);

/* Whether whoever asks may know of this workspace: for lists, and for routes without one in their
 * path. */
bool request_may_see(const struct request *request, struct span workspace);
/* Whether it shows a token, or none is asked for. */
bool request_is_trusted(const struct request *request);

/* Each answer below ends the request, except that headers are added to it right after. One per
 * request. */
/* `bytes` are copied. */
void request_answer(struct request *request, unsigned status, const char *content_type,
                    struct span bytes);
/* request->out, handed over. A buffer that failed becomes the internal error. */
void request_answer_out(struct request *request, unsigned status, const char *content_type);
/* detail may be empty. */
void request_problem(struct request *request, enum problem_id problem, struct span detail);
/* What the store's answer, which is not STORE_OK, is called, and a detail for people (or empty). */
enum problem_id request_problem_of_store(enum store_result result, struct span *ret_detail);
/* 503 with Retry-After: the store did not answer, or not with yes. */
void request_store_failed(struct request *request, enum store_result result);
/* request->stream. */
void request_answer_stream(struct request *request, unsigned status, const char *content_type);
void request_stream_wake(struct request *request);
/* Gives the connection up: its client does not take what it asked for. */
void request_stream_cut(struct request *request);
void request_answer_header(struct request *request, const char *name, const char *value);

#endif
