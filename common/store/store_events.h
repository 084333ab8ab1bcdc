/* The partitions' event streams as answers of the store: pages of them, how far they reach, and
 * what became delayed. Contract §2 (`outboxev`, `outboxopen`), §7. */
#ifndef COMMON_STORE_STORE_EVENTS_H
#define COMMON_STORE_STORE_EVENTS_H

#include "common/core/stream_id.h"
#include "common/store/store.h"

#define EVENT_FIELDS_MAX 24 /* of one event; what is beyond is not read */

struct redisReply;

struct store_event_field {
    struct span name, value;
};
/* Spans live as long as the callback that the list came to. */
struct store_event {
    uint32_t partition;
    struct stream_id id;
    size_t field_count;
    struct store_event_field fields[EVENT_FIELDS_MAX];
};
/* The value of that field; empty if there is none. */
struct span store_event_field(const struct store_event *event, const char *name);

/* Events of one partition, oldest first. */
struct store_event_list {
    uint32_t partition;
    const struct redisReply *rows;
    size_t next;
};
/* The next one; false: no more. What is no event (the store's content is untrusted) is passed over.
 */
bool store_event_next(struct store_event_list *list, struct store_event *ret);

struct events_answer {
    int64_t now_ms;
    struct stream_id first; /* the oldest event still there */
    struct stream_id last;  /* the newest there ever was */
    bool is_whole;          /* none was ever trimmed */
    bool is_full;           /* as many as asked for: there may be more */
    struct store_event_list events;
};
typedef void store_events_cb(enum store_result result, struct events_answer *answer, void *arg);
/* Events behind `after`, `max` at most (0: only how far the stream reaches). */
void store_events(struct store *store, uint32_t partition, struct stream_id after, uint32_t max,
                  store_events_cb *cb, void *arg);

struct delayed_answer {
    int64_t now_ms;
    int64_t looked_to_ms; /* acceptance up to which this look went: `from` of the next one */
    int64_t next_ms;      /* acceptance of the next open entry behind that; <0: none now */
    uint32_t partition;
    const struct redisReply *rows;
    size_t next;
};
typedef void store_delayed_cb(enum store_result result, struct delayed_answer *answer, void *arg);
/* Entries still waiting that were accepted after `from_ms` and `stuck_after_ms` ago or earlier;
 * from_ms <0: none, but where the next look begins. Reads only. */
void store_delayed(struct store *store, uint32_t partition, int64_t stuck_after_ms, int64_t from_ms,
                   store_delayed_cb *cb, void *arg);
/* The next one as an event of type `delayed` (its time, in `id.ms`, is when it became so; it has no
 * place in the stream); false: no more. */
bool store_delayed_next(struct delayed_answer *answer, struct store_event *ret);

#endif
