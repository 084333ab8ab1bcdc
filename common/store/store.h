/* Typed calls on the store: a pool of connections, one function per script, typed answers. Nobody
 * else builds a key or reads a reply. Loop thread only. Contract §2, §3, §8.
 *
 * All calls: the callback runs exactly once, never before the call returned; `result` is STORE_OK
 * or the answer must not be read (`answer` is NULL then). Every script is idempotent: after CUT or
 * TIMEOUT the same call may be repeated and answers the same. Names (workspace, session, cmid) are
 * raw here; keys are encoded inside. Arguments are copied. */
#ifndef COMMON_STORE_STORE_H
#define COMMON_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/settings.h"
#include "common/core/buf.h"
#include "common/core/ids.h"
#include "common/core/lifecycle.h"
#include "common/core/span.h"
#include "common/shm/metrics.h"
#include "common/store/entry.h"
#include "common/store/store_conn.h"

struct store;

struct store_options {
    const char *url, *password;
    uint32_t connections;     /* size of the pool, at least 1 */
    uint32_t max_outstanding; /* per connection */
    int64_t connect_timeout_ms, command_timeout_ms;
    struct durability durability;
    int64_t dedupe_ttl_ms;
    int64_t lock_ttl_ms;
    uint32_t events_max;
    struct metrics *metrics; /* may be NULL */
    /* The first connection came up / the last one went down. Also told once per lost connection as
     * `lost` so that a worker can look for claims whose answers were lost. May be NULL. */
    void (*on_state)(struct store *store, bool is_up, enum store_result why, void *arg);
    void (*on_lost)(struct store *store, void *arg);
    void *arg;
};

int store_open(struct uv_loop_s *loop, const struct store_options *options, struct store **ret);
/* Limits of a new configuration, for calls from now on. */
void store_set_limits(struct store *store, int64_t dedupe_ttl_ms, int64_t lock_ttl_ms);
void store_close(struct store *store, void (*closed)(void *arg), void *arg);
bool store_is_up(const struct store *store);
uint32_t store_outstanding(const struct store *store);

/* ---- acceptance
 * -------------------------------------------------------------------------------------------- */

struct accept_request {
    struct span workspace, session;
    struct span id;     /* entry_id_make's text */
    struct span digest; /* hex of the accepted request */
    struct span flags;  /* ENTRY_FLAG_… */
    const struct entry_body *body;
    uint32_t session_cap;
};

enum accept_result {
    ACCEPT_ACCEPTED,
    ACCEPT_DUPLICATE, /* id: the original's */
    ACCEPT_KEY_REUSE, /* the same clientMessageID with another body */
    ACCEPT_SESSION_FULL,
};
struct accept_answer {
    enum accept_result result;
    struct span id;
    struct span entry_status; /* for duplicates: a status, or how it ended: sent, removed,
                                 discarded, replaced */
    int64_t accepted_at_ms;   /* of the original for duplicates; 0 if no longer known */
    int64_t now_ms;           /* the store's clock */
};
typedef void store_accept_cb(enum store_result result, const struct accept_answer *answer,
                             void *arg);
void store_accept(struct store *store, const struct accept_request *request, store_accept_cb *cb,
                  void *arg);

/* ---- delivery
 * -----------------------------------------------------------------------------------------------
 */

enum claim_mode {
    CLAIM_SEND,   /* sends was raised, the entry is `delivering`: POST it */
    CLAIM_VERIFY, /* look it up first; then store_begin_send, or an outcome */
    CLAIM_POLL,   /* prior-pending: ask the target about the previous attempt */
};

/* A session locked for us, and its entry. */
struct claim {
    struct span workspace;
    enum claim_mode mode;
    struct lock_token token;
    struct entry entry;
    int64_t now_ms;          /* the store's clock at the claim */
    struct span target_conf; /* the workspace's own target, JSON; empty if it has none */
};

struct claim_quota {
    struct span workspace;
    uint32_t max; /* 0: skip this workspace */
};
struct claim_request {
    uint32_t partition;
    struct lock_token token; /* unique for this call */
    uint32_t max;            /* sessions at most */
    uint32_t max_per_workspace;
    const struct claim_quota *quotas; /* workspaces with a limit of their own */
    size_t quota_count;
};
struct claim_answer {
    const struct claim *claims;
    size_t count;
    bool has_more;       /* something that quotas allow is still due */
    int64_t next_due_ms; /* delay from now until the partition next has work; <0: none */
};
typedef void store_claim_cb(enum store_result result, const struct claim_answer *answer, void *arg);
void store_claim(struct store *store, const struct claim_request *request, store_claim_cb *cb,
                 void *arg);

/* The claim that an outcome belongs to. */
struct claim_ref {
    struct span workspace, session, id;
    struct lock_token token;
    uint32_t sends;
    enum entry_status
        status; /* when the worker acted: `delivering`, or `verifying`/`pending` for look-ups */
};

/* After an outcome: the lock is released, or kept for the session's next entry. */
struct outcome_answer {
    bool applied; /* false: gone (finish), or no longer ours (settle): nothing was changed */
    const struct claim *next; /* NULL: the lock was released */
    int64_t
        next_due_ms; /* this session's next due time as a delay; <0: none. Only when next is NULL */
};
typedef void store_outcome_cb(enum store_result result, const struct outcome_answer *answer,
                              void *arg);

enum sent_via { VIA_ANSWER, VIA_VERIFICATION, VIA_LEDGER, VIA_ECHO };
/* Confirmed. Valid from any earlier claim of the entry; `result` is raw JSON or empty. */
void store_finish(struct store *store, const struct claim_ref *ref, enum sent_via via,
                  struct span result, bool want_next, store_outcome_cb *cb, void *arg);

struct settle_request {
    struct claim_ref ref;
    struct lifecycle_step step; /* what lifecycle_apply said; never STATUS_ENDED */
    struct span error_code,
        error_message; /* also kept as lastError when the step is not an error */
    struct span conflict_current;
    struct span
        sweep;      /* of an error that a sweep may settle: who settles it (`ledger`, `verify`) */
    bool is_unsent; /* no request was started: the claim's `sends` is taken back */
    bool want_next;
};
void store_settle(struct store *store, const struct settle_request *request, store_outcome_cb *cb,
                  void *arg);

struct begin_send_answer {
    bool applied;   /* false: the claim is no longer ours: drop it */
    uint32_t sends; /* the number of this request */
    int64_t now_ms;
};
typedef void store_begin_send_cb(enum store_result result, const struct begin_send_answer *answer,
                                 void *arg);
/* Also extends the lock by lock_ttl. */
void store_begin_send(struct store *store, const struct claim_ref *ref, store_begin_send_cb *cb,
                      void *arg);

typedef void store_flag_cb(enum store_result result, bool yes, void *arg);
/* Before a request to an agent that takes no message ID: notes the newest message that is there
 * (the first of its requests counts, until a later entry has been sent), and makes the entry
 * strict, so that nothing alike overtakes it. yes: the claim is still ours, and it is noted; else
 * it is to be given back. */
void store_note_baseline(struct store *store, const struct claim_ref *ref, struct span message_id,
                         store_flag_cb *cb, void *arg);
/* Gives a claim back unsent (lowers `sends` again if it was raised); due now, or after delay_ms. */
void store_release(struct store *store, const struct claim_ref *ref, int64_t delay_ms,
                   store_flag_cb *cb, void *arg);
/* The same; the whole session rests for delay_ms (a minute at most), and what it holds keeps its
 * times, so that nothing overtakes. `reason` is told in an event (`retrying`); empty: none. */
void store_hold(struct store *store, const struct claim_ref *ref, int64_t delay_ms,
                struct span reason, store_flag_cb *cb, void *arg);
/* Whether the token still holds the session's lock. */
void store_owns(struct store *store, const struct claim_ref *ref, store_flag_cb *cb, void *arg);

/* ---- recovery
 * ------------------------------------------------------------------------------------------------
 */

struct held_session {
    struct span workspace, session;
    struct span token; /* empty: the lock is gone, only the index remains */
    int64_t deadline_ms, now_ms;
    bool has_staged;
    struct span staged_id; /* the first one */
};
typedef void store_held_cb(enum store_result result, const struct held_session *held, size_t count,
                           void *arg);
/* Locked sessions of a partition whose token starts with `prefix` ("" : all), and those past their
 * deadline. */
void store_held(struct store *store, uint32_t partition, struct span prefix, store_held_cb *cb,
                void *arg);
/* Adds a session to those that one call takes back. 0; -ENOMEM: the list is full, or memory is. */
int store_recover_list(struct buf *list, struct span workspace, struct span session,
                       struct span token);
/* Takes sessions of one partition back: each only if its lock still holds that token or is gone.
 * `flags`: in their order '1' for each where something was recovered, else '0'. */
typedef void store_flags_cb(enum store_result result, struct span flags, void *arg);
void store_recover(struct store *store, uint32_t partition, struct span list, store_flags_cb *cb,
                   void *arg);

/* The next few open entries of a partition, from the newest (0) or a place that the last answer
 * gave: those that no claim would find (a store restored from pieces) are put back where one
 * does. `next` is 0 when all were seen. Costs the same however many there are. */
struct audit_answer {
    int64_t next;
    uint32_t mended;
};
typedef void store_audit_cb(enum store_result result, const struct audit_answer *answer, void *arg);
void store_audit(struct store *store, uint32_t partition, int64_t from, uint32_t limit,
                 store_audit_cb *cb, void *arg);
/* Raises this generation's counter (every process of the generation does so every 2 s). */
void store_beat(struct store *store, const char *node, uint64_t generation, store_flag_cb *cb,
                void *arg);

typedef void store_beat_cb(enum store_result result, bool exists, int64_t counter, void *arg);
/* Reads another generation's counter. */
void store_read_beat(struct store *store, const char *node, uint64_t generation, store_beat_cb *cb,
                     void *arg);

/* ---- people
 * --------------------------------------------------------------------------------------------------
 */

struct tombstone {
    struct span how; /* sent, removed, discarded, replaced */
    struct span session, client_message_id, kind, replaced_by,
        result; /* result: raw JSON or empty */
    int64_t accepted_at_ms, ended_at_ms;
};
struct get_answer {
    const struct entry *entry;         /* or NULL */
    const struct tombstone *tombstone; /* or NULL; both NULL: not found */
    struct span in_flight;      /* the ID that its session is sending or verifying, or empty */
    int64_t in_flight_since_ms; /* when its claim was taken; 0: unknown */
    int64_t now_ms;
};
typedef void store_get_cb(enum store_result result, const struct get_answer *answer, void *arg);
void store_get(struct store *store, struct span workspace, struct span id, store_get_cb *cb,
               void *arg);

struct list_answer {
    const struct entry *entries;
    size_t count;
    uint32_t walked;            /* places of the queue that this page stands for */
    bool has_more;              /* ask again with offset + walked */
    struct span in_flight;      /* the ID being sent or verified now, or empty */
    int64_t in_flight_since_ms; /* when its claim was taken; 0: unknown */
    int64_t now_ms;
};
typedef void store_list_cb(enum store_result result, const struct list_answer *answer, void *arg);
/* At most 500 entries per call. */
void store_list(struct store *store, struct span workspace, struct span session, uint32_t offset,
                uint32_t limit, store_list_cb *cb, void *arg);

struct counts_answer {
    uint64_t by_status[STATUS_COUNT];
    int64_t oldest_open_age_ms; /* 0: none open */
    uint64_t locked;
    int64_t now_ms;
};
typedef void store_counts_cb(enum store_result result, const struct counts_answer *answer,
                             void *arg);
void store_counts(struct store *store, uint32_t partition, store_counts_cb *cb, void *arg);

/* ---- the server itself (preflight.h of the supervisor, /readyz)
 * ------------------------------------------------ */

struct server_facts {
    char name[16]; /* valkey or redis */
    char version[32];
    bool aof_enabled;
    char appendfsync[16];
    char maxmemory_policy[32];
    bool is_loading, is_replica;
    bool aof_last_write_ok, aof_last_rewrite_ok;
    int64_t now_ms;                               /* its clock; 0: it does not tell */
    uint64_t used_memory_bytes, max_memory_bytes; /* max 0: no limit */
    uint64_t process_id;
    uint32_t connected_replicas;
};
typedef void store_facts_cb(enum store_result result, const struct server_facts *facts, void *arg);
/* INFO and CONFIG GET; a server that forbids CONFIG gives STORE_NOAUTH. */
void store_facts(struct store *store, store_facts_cb *cb, void *arg);
/* Writes layout version and partition count if absent, and compares. yes: they match. */
void store_check_meta(struct store *store, store_flag_cb *cb, void *arg);
/* NULL if a server of this version will do, else a sentence. Pure. */
const char *store_version_refusal(const char *version);
/* Why these facts do not give this durability: NULL if they do, else a sentence for people that
 * names the setting and the command that mends it. Pure; static string. */
const char *store_facts_refusal(const struct server_facts *facts, struct durability durability);

#endif
