/* The typed store calls as blocking ones, for tests: each runs the loop until its callback came.
 * Results are copies. Plus a plain hiredis connection for looking at keys, and the invariants that
 * hold after every transition. */
#ifndef TESTS_STORE_SUPPORT_SYNC_STORE_H
#define TESTS_STORE_SUPPORT_SYNC_STORE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/keys.h"
#include "common/store/store.h"
#include "common/store/store_workspace.h"

struct uv_loop_s;

struct sync_store {
    struct uv_loop_s *loop;
    struct store *store;
    redisContext *raw;
    bool is_lossy; /* calls that fail leave it in `result`; else they end the program */
    enum store_result result;
};

#define SYNC_CLAIMS_MAX 64

/* A claim's essentials, copied. */
struct taken {
    char workspace[WORKSPACE_MAX + 1];
    char session[SESSION_MAX + 1];
    char id[64];
    enum claim_mode mode;
    struct lock_token token;
    enum entry_status status;
    uint32_t sends, attempts, verify_attempts, transient_fails;
    char text[256];
    char payload[256]; /* as it is sent: with what results have filled */
};

struct taken_list {
    struct taken items[SYNC_CLAIMS_MAX];
    size_t count;
    bool has_more;
    int64_t next_due_ms;
};

struct outcome_copy {
    bool applied, has_next;
    struct taken next;
    int64_t next_due_ms;
};

/* `path`: the Unix socket of a running server. Locks live lock_ttl_ms, tombstones dedupe_ttl_ms. */
struct sync_store *sync_store_open(const char *path, int64_t lock_ttl_ms, int64_t dedupe_ttl_ms);
/* The same for calls whose answers may be lost or take any time: `is_lossy`, without `raw`. */
struct sync_store *sync_store_open_lossy(const char *path, int64_t lock_ttl_ms,
                                         int64_t dedupe_ttl_ms);
void sync_store_close(struct sync_store *s);

/* flags: "s", "i", "v", … ; cmid may be "". The ID that the answer names is copied to ret_id (64
 * bytes) if not NULL. */
enum accept_result sync_accept(struct sync_store *s, const char *ws, const char *ses,
                               const char *id, const char *cmid, const char *digest,
                               const char *flags, uint32_t cap, char *ret_id);
struct taken_list sync_claim(struct sync_store *s, const char *ws_of_partition, const char *token,
                             uint32_t max, uint32_t per_workspace, const struct claim_quota *quotas,
                             size_t quota_count);
/* Claims as the callbacks of other calls get them. */
void sync_copy_claim(const struct claim *claim, struct taken *to);
struct outcome_copy sync_finish(struct sync_store *s, const struct taken *taken, bool want_next);
/* Settles through the lifecycle table with `outcome`; delays are those of `limits` below. */
struct outcome_copy sync_settle(struct sync_store *s, const struct taken *taken,
                                enum outcome outcome, bool want_next);
/* Confirmed, with a result: JSON, or "". */
struct outcome_copy sync_finish_with(struct sync_store *s, const struct taken *taken,
                                     const char *result, bool want_next);
struct outcome_copy sync_finish_via(struct sync_store *s, const struct taken *taken,
                                    enum sent_via via, const char *result, bool want_next);
/* As it is given; `ref` is filled in. */
struct outcome_copy sync_settle_request(struct sync_store *s, const struct taken *taken,
                                        struct settle_request *request);
/* Any other outcome, as a worker writes it down; `current` of a conflict: JSON. */
struct outcome_copy sync_settle_with(struct sync_store *s, const struct taken *taken,
                                     enum outcome outcome, const char *current, bool want_next);
struct begin_send_answer sync_begin_send(struct sync_store *s, const struct taken *taken);
bool sync_note_baseline(struct sync_store *s, const struct taken *taken, const char *message);
/* With an empty ID: whatever the token has staged. */
bool sync_release(struct sync_store *s, const struct taken *taken);
bool sync_hold(struct sync_store *s, const struct taken *taken, int64_t delay_ms,
               const char *reason);
bool sync_recover(struct sync_store *s, const char *ws, const char *ses, const char *token);
enum person_result {
    PERSON_DONE,
    PERSON_NOT_FOUND,
    PERSON_BUSY,
    PERSON_NOT_FAILED,
    PERSON_OTHER,
};
enum person_result sync_retry(struct sync_store *s, const char *ws, const char *id,
                              const char *new_id, char *ret_what);
enum person_result sync_remove(struct sync_store *s, const char *ws, const char *id,
                               char *ret_what);
/* A whole walk in steps of at most `step` entries (0: as ever); how many entries, or keys. */
uint64_t sync_walk(struct sync_store *s, enum walk_kind kind, const char *ws, uint32_t step);
void sync_pause(struct sync_store *s, const char *ws, bool is_paused);
/* A walk that goes on while other calls run the loop, one step or two with each of them. */
struct sync_walking {
    bool is_done;
    enum store_result result;
    struct walk_answer answer;
};
void sync_walk_begin(struct sync_store *s, enum walk_kind kind, const char *ws, uint32_t step,
                     struct sync_walking *walking);
/* Lets it go on for a step or two; `other`: another connection to the same server. */
void sync_walk_on(struct sync_store *walker, struct sync_store *other);
void sync_walk_end(struct sync_store *s, struct sync_walking *walking);
/* The status, or how it ended, or "none". */
const char *sync_state(struct sync_store *s, const char *ws, const char *id);
size_t sync_held(struct sync_store *s, const char *ws_of_partition, const char *prefix);
/* Workspace, session and token of each, of SYNC_CLAIMS_MAX at most. */
struct taken_list sync_held_list(struct sync_store *s, const char *ws_of_partition,
                                 const char *prefix);
/* Audits all open entries of that partition; how many places were mended. */
uint32_t sync_audit(struct sync_store *s, const char *ws_of_partition);
/* Recovers every locked session of that partition, whoever holds it. */
void sync_recover_all(struct sync_store *s, const char *ws_of_partition);

/* Limits used by sync_settle: tests may change them. */
extern struct lifecycle_limits sync_limits;

/* Text of one plain command's reply: "" for nil; for numbers, decimal. Static memory of the last
 * call. */
const char *sync_raw(struct sync_store *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs a script without keys and returns its text. Static memory of the last call. */
const char *sync_script(struct sync_store *s, const char *script);
/* Checks the whole store; writes the first contradiction to `why` and returns false. */
bool sync_invariants_hold(struct sync_store *s, char *why, size_t why_size);

#endif
