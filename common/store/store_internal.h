/* What the typed calls share: the pool, one pending call, arguments, and how replies are read.
 * Private to common/store. */
#ifndef COMMON_STORE_STORE_INTERNAL_H
#define COMMON_STORE_STORE_INTERNAL_H

#include <hiredis/hiredis.h>

#include "common/core/keys.h"
#include "common/store/scripts.h"
#include "common/store/store.h"

#define CALL_ARGS_MAX 280  /* 20 fixed ones, or a claim with 128 quotas */
#define KEY_MAX       1600 /* outboxdedupe + partition + workspace + session + cmid, encoded */

struct store {
    struct uv_loop_s *loop;
    struct store_conn **conns;
    uint32_t conn_count, conns_up, conns_open;
    uint32_t next_conn; /* where the search for the least loaded one starts */
    struct durability durability;
    int64_t dedupe_ttl_ms, lock_ttl_ms;
    uint32_t events_max;
    struct metrics *metrics;
    void (*on_state)(struct store *store, bool is_up, enum store_result why, void *arg);
    void (*on_lost)(struct store *store, void *arg);
    void *arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* The connected one with the least outstanding; some connection that is away if none is up. */
struct store_conn *store_pick(struct store *store);

/* One script call being put together. Text is copied into `text`; spans given as they are must live
 * until the call is made (hiredis copies then). */
struct call {
    struct store *store;
    enum script_id script;
    struct span argv[CALL_ARGS_MAX];
    size_t argc;
    char text[32768]; /* numbers, encoded names, the key */
    size_t used;
    struct span key;
    bool is_durable; /* waits for the replicas that `durability` demands */
    bool has_overflown;
};

void call_init(struct call *call, struct store *store, enum script_id script, uint32_t partition);
/* "<what>:{p}[:enc…]": workspace first; empty spans end the list. Becomes KEYS[1]. */
void call_key(struct call *call, const char *what, uint32_t partition, struct span workspace,
              struct span rest);
void call_span(struct call *call, struct span bytes);
void call_str(struct call *call, const char *str);
void call_encoded(struct call *call, struct span raw);
void call_number(struct call *call, int64_t number);

/* One pending call: which typed callback its reply goes to. Freed by the reader's caller. */
struct pending {
    struct store *store;
    enum script_id script;
    int64_t sent_ns;
    void (*read)(struct pending *pending, enum store_result result, const struct redisReply *reply);
    void (*cb)(void); /* the typed callback, cast back by `read` */
    void *arg;
};
typedef void pending_reader(struct pending *pending, enum store_result result,
                            const struct redisReply *reply);
/* Sends; `read` runs once. Out of memory or an overflown call arrives there as STORE_FULL. */
void call_send(struct call *call, pending_reader *read, void (*cb)(void), void *arg);

/* The same of arguments that somebody else put together, `argv` beginning with partition and events
 * kept; they are copied. */
void call_send_args(struct store *store, enum script_id script, struct span key, size_t argc,
                    const struct span *argv, bool is_durable, bool has_overflown,
                    pending_reader *read, void (*cb)(void), void *arg);
/* What a script of acceptance calls a result. 0, or -1: none. */
int accept_result_of(struct span name, enum accept_result *ret);

/* Readers of replies: never trust the form. */
bool reply_is_array(const struct redisReply *reply, size_t at_least);
int64_t reply_number(const struct redisReply *reply);   /* integer or numeric text; 0 otherwise */
struct span reply_span(const struct redisReply *reply); /* empty unless a string */
/* A time of the store in milliseconds as it may be calculated with; 0: it is none. */
int64_t reply_time_ms(int64_t ms);
/* Whether it may stand in a document as it is: JSON of any kind, or nothing. */
bool reply_is_json(struct span text);
/* A flat HGETALL array of statuses and numbers; what is none of them is left as it is. */
void reply_counts(const struct redisReply *flat, uint64_t ret_by_status[STATUS_COUNT]);
/* A flat HGETALL array -> entry. Returns 0, or -EBADMSG if it is no entry at all. The error's text,
 * decoded from JSON, is written into `text` (an entry's private room). */
struct entry_text {
    char error[1024];
};
int reply_entry(const struct redisReply *fields, struct span id, struct entry_text *text,
                struct entry *ret);

/* As in events and tombstones. */
const char *sent_via_name(enum sent_via via);

#endif
