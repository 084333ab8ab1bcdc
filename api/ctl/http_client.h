/* One HTTP request to outboxd's API and its answer. */
#ifndef API_CTL_HTTP_CLIENT_H
#define API_CTL_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/buf.h"
#include "common/core/span.h"

struct http_client;

struct http_answer {
    long status;
    int64_t retry_after_ms; /* what the server asks to wait before a repeat; -1: nothing */
    struct buf body;        /* http_answer_done frees */
};

/* Files for an https server (PEM); each may be NULL: the system's authorities, no certificate. */
struct http_tls {
    const char *ca, *certificate, *key;
};

/* `server`: http://…, https://… or unix:PATH. `token` may be NULL. `tls` is not kept, its texts
 * are. On failure NULL; what is wrong stands in `mistake`, for people. */
struct http_client *http_client_create(const char *server, const char *token,
                                       const struct http_tls *tls, const char **mistake);
void http_client_destroy(struct http_client **client);
/* How long a call may take in all, and how long a stream (0: for ever); a minute and for ever where
 * nothing is said. */
void http_client_set_limits(struct http_client *client, long call_ms, long stream_ms);
/* `path` as it goes over the wire. `body`: JSON, or nothing. 0 with *ret, or -EIO: then
 * http_client_mistake() tells what happened and http_client_may_have_arrived() whether the server
 * may have the request all the same. */
int http_client_call(struct http_client *client, const char *method, const char *path,
                     struct span body, struct http_answer *ret);
/* GET of a stream that may go on for ever. `last_event_id` may be NULL. on_bytes gets what comes
 * with status 200, as it comes; false ends it, which is an -EIO. 0 when the server ended it, with
 * *ret (its body is the answer of another status); -EIO. */
int http_client_stream(struct http_client *client, const char *path, const char *last_event_id,
                       bool (*on_bytes)(struct span bytes, void *arg), void *arg,
                       struct http_answer *ret);
void http_answer_done(struct http_answer *answer);
const char *http_client_mistake(const struct http_client *client);
bool http_client_may_have_arrived(const struct http_client *client);

#endif
