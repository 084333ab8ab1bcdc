/* What a person's operation on an entry does to it and to what waits for it: (entries, operation)
 * -> plan. Pure: no I/O, no clock, no payloads (a plan says whose payload goes where). The plan is
 * carried out by one script, which checks that nothing it was made from has changed. Contract §6.
 *
 * Entries are numbers here: 0 to count - 1, and `count` is the entry that the plan creates. */
#ifndef COMMON_CORE_RESOLVER_H
#define COMMON_CORE_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/lifecycle.h"

#define RESOLVER_NONE UINT32_MAX

/* What a follow-up does to the entry that it follows. */
enum resolver_part { RESOLVER_PART_NONE, RESOLVER_PART_EDIT, RESOLVER_PART_REMOVE };

struct resolver_entry {
    enum entry_status status;
    bool is_in_flight;                                      /* it is being sent or verified now */
    bool is_idempotent, can_follow_edit, can_follow_remove; /* of its kind, as configured now */
    bool may_be_stored;     /* an error whose last attempt the target may have carried out */
    bool failed_with_chain; /* an error because what it waited for was discarded */
    uint32_t sends;
    int64_t rank; /* place in the order of the workspace: its acceptance, unless it stands in
                     for an older one (ms of the store's clock) */
    enum resolver_part part; /* it is a follow-up … */
    uint32_t root;           /* … of this one; RESOLVER_NONE: of one that is gone, or none */
    const uint32_t *deps;    /* what it waits for and is still there */
    size_t dep_count;
};

enum resolver_operation { RESOLVER_RETRY, RESOLVER_EDIT, RESOLVER_REMOVE };

enum resolver_result {
    RESOLVER_DONE,
    RESOLVER_BUSY,         /* this very entry is being sent or verified now */
    RESOLVER_NOT_FAILED,   /* retry of what is not `error` */
    RESOLVER_ALREADY_SENT, /* an edit, and its kind has no follow_up_edit */
};

/* What happened, for the answer. */
enum resolver_what {
    RESOLVER_RETRIED,
    RESOLVER_REPLACED,
    RESOLVER_EDITED,
    RESOLVER_FOLLOW_UP,
    RESOLVER_REMOVED,
    RESOLVER_DISCARDED,
};

enum resolver_fate {
    RESOLVER_STAYS,
    RESOLVER_REARMED,      /* error -> pending, counters zeroed, its place kept */
    RESOLVER_FAILS,        /* -> error `dependency_discarded` */
    RESOLVER_ENDS_REMOVED, /* leaves the store … */
    RESOLVER_ENDS_DISCARDED,
    RESOLVER_ENDS_REPLACED, /* … and its ID, and its dedupe marker, now mean the created entry */
};

struct resolver_change {
    enum resolver_fate fate;
    bool has_deps;  /* `deps` replaces what it waits for */
    uint32_t *deps; /* owned by the plan; may name the created entry */
    size_t dep_count;
    uint32_t fills_from; /* null members of its payload take those of this entry; or NONE */
};

enum resolver_creates {
    RESOLVER_CREATES_NOTHING,
    RESOLVER_CREATES_REPLACEMENT,   /* of the target: same kind */
    RESOLVER_CREATES_FOLLOW_EDIT,   /* kind: follow_up_edit of the root's */
    RESOLVER_CREATES_FOLLOW_REMOVE, /* kind: follow_up_remove of it */
};

struct resolver_plan {
    enum resolver_result result; /* anything but DONE: nothing changes */
    enum resolver_what what;
    uint32_t
        subject; /* the entry that the answer names: the target, a follow-up, or the created one */
    struct resolver_change *changes; /* one for each entry */
    size_t count;
    /* The patch is merged into the payload of `patch_from`; the result becomes the payload of
     * `patched` (the created entry or one that is there). NONE: there is no patch to apply. */
    uint32_t patched, patch_from;
    enum resolver_creates creates;
    uint32_t created_from; /* whose payload the created entry takes, where no patch is applied */
    uint32_t created_root; /* the entry that it follows */
    int64_t created_rank;
    bool is_created_awaited; /* something waits for it: it stands before that, by its rank */
    uint32_t *created_deps;
    size_t created_dep_count;
};

/* Plans one operation on entries[target]. `entries` holds the target, all that waits for it
 * directly or not, and what these wait for. `now_ms`: the store's clock. 0, or -ENOMEM, or -EINVAL
 * (indices out of range). resolver_plan_done() in either case. */
int resolver_plan(const struct resolver_entry *entries, size_t count,
                  enum resolver_operation operation, uint32_t target, int64_t now_ms,
                  struct resolver_plan *ret);
void resolver_plan_done(struct resolver_plan *plan);

const char *resolver_what_name(enum resolver_what what);

#endif
