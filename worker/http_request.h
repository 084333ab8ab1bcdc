/* How an entry becomes an HTTP request: URL, headers and body from the kind's templates, the
 * target, the entry. Nothing is sent here. Contract §4. */
#ifndef WORKER_HTTP_REQUEST_H
#define WORKER_HTTP_REQUEST_H

#include "common/base/settings.h"
#include "common/core/buf.h"
#include "common/store/entry.h"
#include "worker/target.h"

struct transfer_request;

/* What a request was built from: memory that must outlive it. */
struct http_request_text {
    struct buf url, body, headers; /* headers: lines, each ended by NUL */
    struct buf place;              /* of http_request_place */
    char problem[256];             /* why it could not be built, for people */
};
void http_request_text_init(struct http_request_text *text);
void http_request_text_done(struct http_request_text *text);

/* Whom a request by this template goes to: the target's base URL, or, where the template itself
 * names a place, that one ("https://host:port"). Lives in the target or in `text`. NULL: there is
 * none, or it can't be filled. */
const char *http_request_place(const char *template, const struct target *target,
                               struct span workspace, const struct entry *entry,
                               struct http_request_text *text);
/* The request of one attempt. Fills *ret (its strings live in `text`, the entry, the target and the
 * settings). Returns 0, or -EINVAL with `text->problem` (a template that can't be filled, no
 * target): that is final. -ENOMEM. */
int http_request_build(const struct kind *kind, const struct target *target, struct span workspace,
                       const struct entry *entry, uint32_t attempt, struct http_request_text *text,
                       struct transfer_request *ret);
/* Adds what every attempt of every executor carries: Idempotency-Key, Outbox-Client-Message-Id,
 * Outbox-Attempt, traceparent, Content-Type, and the signature of Standard Webhooks where the
 * target has secrets (contract §4). `ret` has method and body already. `target` NULL: the request
 * goes to another place. 0 or -ENOMEM, -ENOBUFS. */
int http_request_add_headers(const struct entry *entry, uint32_t attempt, const char *content_type,
                             const struct target *target, struct http_request_text *text,
                             struct transfer_request *ret);
/* As http_request_build, for the kind's look-up. */
int http_request_build_lookup(const struct kind *kind, const struct target *target,
                              struct span workspace, const struct entry *entry, int64_t timeout_ms,
                              struct http_request_text *text, struct transfer_request *ret);

#endif
