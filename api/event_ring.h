/* The recent events, written out once for all readers: a reader only remembers a number. Bounded in
 * number and bytes; the oldest goes first. Loop thread only.
 *
 *   records   first .......... next      (numbers never come twice; 0 is none)
 *   floor[p]  the last event of partition p that is not here any more: who has come that far finds
 *             all that follows in the ring */
#ifndef API_EVENT_RING_H
#define API_EVENT_RING_H

#include <stdbool.h>

#include "common/core/buf.h"
#include "common/core/keys.h"
#include "common/core/stream_id.h"

struct store_event;

/* What readers may follow. */
enum event_scope { SCOPE_SESSION, SCOPE_WORKSPACE, SCOPE_ALL, SCOPE_COUNT };

struct event_record {
    uint32_t partition;
    struct stream_id id;
    bool is_placed;           /* it stands in the stream; `delayed` does not, and has no `id:` */
    uint64_t next[SCOPE_ALL]; /* of the same session, workspace; 0: none, or nobody follows it */
    struct span workspace, session;
    struct span head;     /* its first lines, with the position in its partition */
    struct span head_all; /* the same with the position in all; empty: nobody reads all */
    struct span data;     /* the rest */
    size_t size;          /* of the whole, in bytes */
    char bytes[];
};

/* `position_all` may be empty. Never fails (out of memory ends the process: a gap would be worse).
 */
struct event_record *event_record_create(const struct store_event *event, bool is_placed,
                                         struct span position_all, struct buf *scratch);

struct event_ring {
    struct event_record **records;
    uint64_t first, next;
    size_t bytes;
    struct stream_id floor[PARTITION_COUNT];
};

/* 0 or -ENOMEM. */
int event_ring_init(struct event_ring *ring);
void event_ring_done(struct event_ring *ring);
/* Empty; numbers go on. */
void event_ring_clear(struct event_ring *ring, const struct stream_id floor[PARTITION_COUNT]);
/* Takes the record over; returns its number. */
uint64_t event_ring_append(struct event_ring *ring, struct event_record *record);
/* NULL: it is gone, or there is none yet. */
struct event_record *event_ring_get(const struct event_ring *ring, uint64_t number);

#endif
