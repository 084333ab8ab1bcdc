/* Follows the event streams of all partitions on a connection of its own (XREAD BLOCK keeps one
 * busy). Asks only as long as its owner wants more; an outage leaves no gap: it goes on behind the
 * last event it has told. Loop thread only. */
#ifndef COMMON_STORE_EVENT_TAIL_H
#define COMMON_STORE_EVENT_TAIL_H

#include "common/core/keys.h"
#include "common/store/store_events.h"

struct event_tail;

struct event_tail_options {
    const char *url, *password; /* copied */
    int64_t connect_timeout_ms;
    /* Some new events of a partition. */
    void (*on_events)(struct store_event_list *events, void *arg);
    /* A look at all partitions is over; `is_behind`: there is more. Returns whether to go on:
     * false, and nothing is asked for until the next event_tail_follow. */
    bool (*on_round)(bool is_behind, void *arg);
    /* The store is away, or does not answer as it should. Returns whether to try again. */
    bool (*on_lost)(enum store_result why, void *arg);
    void *arg;
};

/* Connects at once. 0 or -errno. */
int event_tail_open(struct uv_loop_s *loop, const struct event_tail_options *options,
                    struct event_tail **ret);
/* Begins behind these IDs. Only while it is not following. */
void event_tail_follow(struct event_tail *tail, const struct stream_id from[PARTITION_COUNT]);
/* No callback runs any more; frees itself. NULL is fine. */
void event_tail_close(struct event_tail **tail);

#endif
