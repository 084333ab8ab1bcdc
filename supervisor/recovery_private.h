/* What recovery.c (passes over the store) and recovery_watch.c (the periodic part) share. */
#ifndef SUPERVISOR_RECOVERY_PRIVATE_H
#define SUPERVISOR_RECOVERY_PRIVATE_H

#include <stdbool.h>
#include <uv.h>

#include "common/core/ids.h"
#include "common/core/keys.h"
#include "common/store/store.h"
#include "supervisor/node_watch.h"
#include "supervisor/recovery.h"

/* A pass over some partitions: reads what is locked, takes back what `judge` says. */
struct sweep;
/* The label under which a session is to be recovered, or -1: leave it. */
typedef int sweep_judge(struct sweep *sweep, const struct held_session *held);
/* A partition whose locks were asked for. */
struct looking {
    struct sweep *sweep;
    uint32_t partition;
};
struct sweep {
    struct recovery *recovery;
    sweep_judge *judge;
    void (*done)(struct sweep *sweep); /* once, when the last answer is there */
    struct lock_token prefix;
    uint64_t dirty;       /* a bit per partition where something was recovered */
    uint32_t outstanding; /* answers to come */
    uint32_t failures;
    uint32_t recovered;
    struct looking looking[PARTITION_COUNT];
};
void sweep_start(struct sweep *sweep, uint32_t first_partition, uint32_t count);

/* Lock files of other generations that were free when the cycle began, and whether a token still
 * names them. */
#define STALE_LOCKS_MAX 512
struct stale_lock {
    uint64_t generation;
    uint32_t slot;
    bool is_named;
};

struct recovery_cycle {
    struct sweep sweep;
    uv_timer_t timer;
    uint32_t next_partition;
    bool has_failed;
    struct stale_lock stale[STALE_LOCKS_MAX];
    size_t stale_count;
};

/* Where the look through a partition's open entries goes on. */
struct audit {
    struct recovery *recovery;
    int64_t next;
    uint32_t cycle;
    bool has_seen_all, is_running;
};

struct recovery {
    struct recovery_options options;
    struct recovery_cycle cycle;
    struct node_watch nodes;
    struct audit audits[PARTITION_COUNT];
    bool is_stopped, is_watching;
    uint32_t handles; /* uv handles of jobs that are not closed yet */
};

/* Whether the token's process is one of this node that lives no more: 1; 0: lives; -ENOENT: another
 * node's. */
int recovery_is_dead_here(const struct recovery *recovery, const struct token_parts *token);
/* The next few open entries of each of these partitions. */
void recovery_audit(struct recovery *recovery, uint32_t first_partition, uint32_t count);

#endif
