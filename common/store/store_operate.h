/* A person's operation on an entry and all that waits for it: read, planned by the resolver
 * (common/core/resolver.h), carried out by one script if nothing has changed meanwhile, else tried
 * again. Contract §3, §6, §7. */
#ifndef COMMON_STORE_STORE_OPERATE_H
#define COMMON_STORE_STORE_OPERATE_H

#include "common/core/resolver.h"
#include "common/store/store.h"

/* What an edit changes: JSON values; an empty span leaves the member as it is. */
struct entry_patch {
    struct span text;    /* a JSON string */
    struct span model;   /* any JSON, replaces; or null: none */
    struct span payload; /* a merge patch (RFC 7396) */
};

struct operate_request {
    struct span workspace, id;
    enum resolver_operation operation;
    struct entry_patch patch; /* of an edit */
    struct span new_id;       /* of the entry that the operation may create: entry_id_make's text */
    const struct settings *settings; /* kinds; must live until the callback ran */
};

enum operate_result {
    OPERATE_DONE,
    OPERATE_NOT_FOUND,
    OPERATE_ENDED,        /* `how` says how: sent, removed, discarded */
    OPERATE_BUSY,         /* this very entry is being sent or verified now */
    OPERATE_NOT_FAILED,   /* retry of what is not `error` */
    OPERATE_ALREADY_SENT, /* an edit, and its kind has no follow_up_edit */
    OPERATE_BAD_PATCH, /* the entry has nothing that the patch could change, or it can't be read */
    OPERATE_TOO_MANY,  /* more than 1000 entries wait for it */
    OPERATE_CONTENDED, /* it kept changing: try again */
};
struct operate_answer {
    enum operate_result result;
    enum resolver_what what;   /* of DONE */
    struct span subject;       /* of DONE: the entry that it came to */
    const struct entry *entry; /* of DONE: that entry now; NULL if it has left */
    struct span how;           /* of ENDED */
    int64_t now_ms;
};
typedef void store_operate_cb(enum store_result result, const struct operate_answer *answer,
                              void *arg);
/* Everything in the request but `settings` is copied. */
void store_operate(struct store *store, const struct operate_request *request, store_operate_cb *cb,
                   void *arg);

struct confirm_request {
    struct span workspace;
    struct span id; /* or, if empty: */
    struct span session, client_message_id;
    struct span result;         /* payload_result's line; empty: none */
    int64_t wait_for_answer_ms; /* how long dependents wait for the answer of what is in flight */
};
struct confirm_answer {
    bool is_confirmed; /* now, or before */
    bool is_new;       /* by this call */
    struct span session;
};
typedef void store_confirm_cb(enum store_result result, const struct confirm_answer *answer,
                              void *arg);
/* An echo: the target was seen to have it. */
void store_confirm(struct store *store, const struct confirm_request *request, store_confirm_cb *cb,
                   void *arg);

#endif
