/* What the hub of event streams and its readers share. Private to api/event_*.c.
 *
 *   event_hub.c       life of it all: start, follow the store, heartbeats, drain
 *   event_channels.c  who follows what; an event's way to those whom it concerns
 *   event_reader.c    one stream: what it sends next
 *   event_pages.c     older events from the store, for readers that resume
 *   event_gap.c       after an outage: what was trimmed meanwhile
 *   event_delayed.c   announces what becomes delayed */
#ifndef API_EVENT_PRIVATE_H
#define API_EVENT_PRIVATE_H

#include <uv.h>

#include "api/event_hub.h"
#include "api/event_position.h"
#include "api/event_reader.h"
#include "api/event_ring.h"
#include "common/store/event_tail.h"

/*   JOINING -> STORE -> SCAN -> LIVE     a reader that resumes: pages of the store until the ring
 *      |_________________________^       holds what follows; then the ring, record by record; then
 *         one that begins now            only those of its own channel, as they come */
enum reader_mode { READER_JOINING, READER_STORE, READER_SCAN, READER_LIVE };

/* Readers of one session, of one workspace, or of all. */
struct channel {
    struct channel *behind; /* in its bucket */
    enum event_scope scope;
    char workspace[WORKSPACE_MAX], session[SESSION_MAX];
    size_t workspace_len, session_len;
    struct event_reader *readers;
    uint64_t tail; /* its newest record since it has readers; 0: none */
};

struct event_reader {
    struct event_hub *hub;
    struct event_reader_options options; /* the spans point into `names` */
    char *names;
    enum reader_mode mode;
    uint32_t partition;                               /* unless it reads all */
    struct channel *channel;                          /* NULL while JOINING */
    struct event_reader *next, *previous;             /* of the channel, or of those that join */
    struct event_reader *next_quiet, *previous_quiet; /* of all, in the order of `quiet_until_ms` */
    int64_t quiet_until_ms;                           /* monotonic: a heartbeat is due then */
    struct buf text;                                  /* what it alone is sent */
    size_t text_sent;
    uint64_t cursor; /* LIVE: the record to send, 0: the channel's next one; SCAN: to look at */
    size_t sent;     /* of that record */
    /* Until it is LIVE: how far it came; one position, or one per partition. */
    struct stream_id *at;
    uint64_t reached;              /* STORE: a bit per partition whose stream reaches as far */
    struct event_reader *next_ask; /* STORE: in the row for a page */
    uint32_t asked_partition;
    bool is_in_row, is_asking, is_ahead;
    bool is_waiting; /* told that there is nothing now */
    bool is_heartbeat_due, is_cut, is_gone;
};

static inline bool reads_all(const struct event_reader *reader)
{
    return reader->options.workspace.len == 0;
}

/* IDLE: nobody listens. STARTING: how far does each stream reach? PRIMING: the last seconds are
 * read, for readers that come back after a restart. */
enum hub_state { HUB_IDLE, HUB_STARTING, HUB_PRIMING, HUB_RUNNING };

#define CHANNEL_BUCKETS 4096

struct head_question {
    struct event_hub *hub;
    uint32_t partition;
};

struct event_hub {
    struct api *api;
    enum hub_state state;
    struct event_tail *tail;
    struct event_delayed *delayed;
    struct event_ring ring;
    struct stream_id last[PARTITION_COUNT]; /* read so far */
    struct stream_id head[PARTITION_COUNT]; /* when it started */
    struct head_question questions[PARTITION_COUNT];
    uint32_t questions_open;
    enum store_result start_result;
    struct channel *buckets[CHANNEL_BUCKETS];
    struct channel all;
    struct event_reader *joining;
    uint32_t reader_count, ahead_count;
    uint32_t listeners[PARTITION_COUNT]; /* readers of its workspaces and sessions */
    struct event_reader *quiet_first, *quiet_last;
    struct event_reader *ask_first, *ask_last;
    uint32_t asking; /* pages under way */
    int64_t ask_after_ms;
    struct buf scratch;
    uv_timer_t tick;
    int64_t swept_ms, cut_all_ms, look_after_ms;
    uint64_t gaps; /* a bit per partition whose stream was trimmed beyond `last` */
    bool is_lost, is_draining, is_closed;
};

/* event_hub.c */
/* Starts the hub if nobody listened so far; true: it runs. */
bool hub_wants_reader(struct event_hub *hub);
void hub_reader_gone(struct event_hub *hub, struct event_reader *reader);
/* Moves it to the end of the row for heartbeats. */
void hub_reader_spoke(struct event_hub *hub, struct event_reader *reader);
void hub_add_event(struct event_hub *hub, const struct store_event *event, bool is_placed);

/* event_channels.c */
/* 0 or -ENOMEM. */
int channels_join(struct event_hub *hub, struct event_reader *reader);
void channels_leave(struct event_hub *hub, struct event_reader *reader);
/* A new record: chained to the last one of its channels, whose readers are woken. */
void channels_tell(struct event_hub *hub, uint64_t number);

/* event_reader.c */
void reader_hub_runs(struct event_reader *reader);
void reader_wake(struct event_reader *reader);
void reader_cut(struct event_reader *reader);
bool reader_has_fallen_off(const struct event_reader *reader);
/* One event into its own text, with its own position. */
void reader_write_event(struct event_reader *reader, const struct store_event *event);
/* Tells that what follows is not what came before, and begins from now. */
void reader_reset(struct event_reader *reader, const char *reason);
bool reader_wants(const struct event_reader *reader, struct span workspace, struct span session);
struct stream_id *reader_at(struct event_reader *reader, uint32_t partition);

/* event_pages.c */
/* A partition that the ring does not reach back to; -1: none. */
int64_t pages_wanted(struct event_reader *reader);
void pages_ask(struct event_reader *reader, uint32_t partition);
void pages_forget(struct event_reader *reader);
void pages_pump(struct event_hub *hub);

/* event_gap.c */
/* While the store is lost: looks whether it is back, and then follows it again. */
void gap_look(struct event_hub *hub);

/* event_delayed.c */
int event_delayed_create(struct event_hub *hub, struct event_delayed **ret);
/* Somebody listens to that partition now, or no longer. */
void event_delayed_watch(struct event_delayed *delayed, uint32_t partition, bool is_watched);
void event_delayed_close(struct event_delayed *delayed);
void event_delayed_destroy(struct event_delayed **delayed);

#endif
