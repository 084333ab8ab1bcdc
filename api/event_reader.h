/* One open stream of events: where it stands, and the bytes it sends next. Contract §7. */
#ifndef API_EVENT_READER_H
#define API_EVENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"
#include "common/store/store_conn.h"

struct access_token;
struct event_hub;
struct event_reader;

struct event_reader_options {
    struct span workspace;             /* empty: everything */
    struct span session;               /* empty: the whole workspace */
    struct span last_event_id;         /* empty: from now on */
    const struct access_token *caller; /* whose workspaces alone are told; NULL: all */
    /* Runs once, perhaps before event_reader_join has returned: the stream can begin (STORE_OK), or
     * not. Nothing that happens after STORE_OK is missed. */
    void (*joined)(enum store_result result, void *arg);
    /* There is something to read, after event_reader_read had returned 0. */
    void (*wake)(void *arg);
    /* The client does not keep up: give its connection up. */
    void (*cut)(void *arg);
    void *arg;
};

/* NULL when out of memory. Spans are copied. */
struct event_reader *event_reader_create(struct event_hub *hub,
                                         const struct event_reader_options *options);
void event_reader_join(struct event_reader *reader);
/* Counts its end; `is_cut`: the client did not keep up. */
void event_reader_ends(const struct event_reader *reader, bool is_cut);
/* No callback runs any more. NULL is fine. */
void event_reader_destroy(struct event_reader **reader);

enum { EVENT_READER_END = -1 };
/* The next bytes of the stream, at most `max`: their number; 0: none now, `wake` will come;
 * EVENT_READER_END: the stream is over. */
int64_t event_reader_read(struct event_reader *reader, char *out, size_t max);

#endif
