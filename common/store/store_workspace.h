/* Typed calls on a whole workspace: pause, target, what stands in it; and walks, the operations
 * that go through its entries in steps of at most 500 (park, unpark, sweeps, cleanup). Rules as in
 * store.h: names are raw, arguments are copied, callbacks run exactly once, later, on the loop
 * thread. What a workspace costs is proportional to that workspace. Contract §2, §3. */
#ifndef COMMON_STORE_STORE_WORKSPACE_H
#define COMMON_STORE_STORE_WORKSPACE_H

#include "common/store/store.h"

/* ---- walks
 * --------------------------------------------------------------------------------------------------
 */

enum walk_kind {
    WALK_PARK,          /* pending, delivering, verifying -> parked; what came later stays */
    WALK_UNPARK,        /* parked -> what it was, due now */
    WALK_UNVERIFIABLE,  /* error with code unverifiable -> verifying, due now */
    WALK_PARKED_ERRORS, /* error that the ledger may settle: the workers look at it now */
    WALK_STILL_FAILED,  /* counts those of a WALK_PARKED_ERRORS begun at `at_ms` still failed */
    WALK_CLEANUP,       /* deletes all there is of it; what comes later is a new workspace */
};
struct walk_request {
    enum walk_kind kind;
    struct span workspace;
    struct span reason;    /* park */
    int64_t at_ms;         /* WALK_STILL_FAILED: which walk; else 0 */
    uint32_t max_per_step; /* entries; 0: 500. For tests */
};
struct walk_answer {
    uint64_t count; /* entries; WALK_CLEANUP: keys removed */
    int64_t at_ms;  /* the store's clock when it began: what was accepted later is not meant */
};
typedef void store_walk_cb(enum store_result result, const struct walk_answer *answer, void *arg);
/* A result other than STORE_OK leaves the walk where it is: begin it again, it goes on. */
void store_walk(struct store *store, const struct walk_request *request, store_walk_cb *cb,
                void *arg);

typedef void store_number_cb(enum store_result result, int64_t number, void *arg);
/* How many entries of a WALK_PARKED_ERRORS begun at `at_ms` no worker has looked at yet. */
void store_sweep_waiting(struct store *store, struct span workspace, int64_t at_ms,
                         store_number_cb *cb, void *arg);

/* ---- settings of a workspace
 * -------------------------------------------------------------------------------- */

/* Accepts go on, what is in flight finishes, nothing is claimed; kept until resumed. */
void store_pause(struct store *store, struct span workspace, bool is_paused, store_flag_cb *cb,
                 void *arg);
/* `target`: JSON text, empty takes it away. yes: it had one before. */
void store_set_target(struct store *store, struct span workspace, struct span target,
                      store_flag_cb *cb, void *arg);

/* ---- what there is
 * ------------------------------------------------------------------------------------------ */

struct workspace_state {
    struct span name;
    bool is_paused;
    uint64_t sessions; /* that hold entries */
    uint64_t by_status[STATUS_COUNT];
    int64_t oldest_open_ms; /* its acceptance; 0: none, or not found with bounded effort */
    struct span target;     /* its own, JSON with credentials; empty: none */
};
struct workspaces_answer {
    const struct workspace_state *workspaces;
    size_t count; /* fewer than asked for: that was the partition's last one */
    int64_t now_ms;
};
typedef void store_workspaces_cb(enum store_result result, const struct workspaces_answer *answer,
                                 void *arg);
/* Those of a partition whose names begin with `prefix` (empty: all) by name (encoded, bytewise),
 * behind `after` (empty: from the first); at most 500. */
void store_workspaces(struct store *store, uint32_t partition, struct span prefix,
                      struct span after, uint32_t limit, store_workspaces_cb *cb, void *arg);
#define SESSIONS_CURSOR_MAX 24
struct sessions_answer {
    const struct span *sessions;
    size_t count;
    struct span next; /* where the next page begins; empty: this was the last one */
};
typedef void store_sessions_cb(enum store_result result, const struct sessions_answer *answer,
                               void *arg);
/* Some hundred of a workspace's sessions that hold entries, in no order, from `cursor` (empty: the
 * first; else what the page before said, digits only). None is missed that is there all the time;
 * one may come twice while others come and go. */
void store_sessions(struct store *store, struct span workspace, struct span cursor,
                    store_sessions_cb *cb, void *arg);
/* That one; none if nothing is stored of it. */
void store_workspace(struct store *store, struct span workspace, store_workspaces_cb *cb,
                     void *arg);

#endif
