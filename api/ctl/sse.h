/* Reads Server-Sent Events as they come in, by the rules of EventSource: an event counts once its
 * blank line is there. Pure. WHATWG HTML, "Interpreting an event stream". */
#ifndef API_CTL_SSE_H
#define API_CTL_SSE_H

#include <stdbool.h>

#include "common/core/buf.h"
#include "common/core/span.h"

struct sse_event {
    struct span name; /* "message" if the stream named none */
    struct span data;
    struct span last_id; /* of this event, or the last one told before; empty: none yet */
};
typedef void sse_event_fn(const struct sse_event *event, void *arg);

struct sse {
    struct buf line, name, data, id, last_id;
    bool is_after_cr;
    sse_event_fn *on_event;
    void *arg;
};

/* last_id: where the stream was resumed; may be empty. */
void sse_init(struct sse *sse, struct span last_id, sse_event_fn *on_event, void *arg);
void sse_done(struct sse *sse);
/* A new connection: what was begun on the old one is dropped. */
void sse_restart(struct sse *sse);
/* 0, or -ENOBUFS: a line or event is longer than any of outboxd's (or no memory is left). */
int sse_feed(struct sse *sse, struct span bytes);

#endif
