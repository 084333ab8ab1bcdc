/* An entry as the store holds it: small state fields and the msgpack body. Store content is
 * untrusted: what can't be decoded is told, never asserted. Contract §2, §3. */
#ifndef COMMON_STORE_ENTRY_H
#define COMMON_STORE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/buf.h"
#include "common/core/lifecycle.h"
#include "common/core/span.h"

#define DEPENDS_ON_MAX 64

/* All that was accepted. Raw members are JSON text, as the client sent it. */
struct entry_body {
    struct span client_message_id;
    struct span user_id;
    struct span kind;
    struct span text; /* has_text tells "" from absent */
    bool has_text;
    struct span model;   /* raw JSON, or empty */
    struct span payload; /* raw JSON, or empty */
    struct span traceparent;
    struct span depends_on[DEPENDS_ON_MAX];
    uint32_t depends_on_count;
};

/* msgpack map. 0 or -ENOBUFS/-ENOMEM. */
int entry_body_encode(const struct entry_body *body, struct buf *out);
/* Spans of *ret point into `bytes`. 0 or -EBADMSG; unknown members are skipped. */
int entry_body_decode(struct span bytes, struct entry_body *ret);

/* What `flags` says of the kind as it was at acceptance: a hint for scripts; workers decide by
 * their configuration. */
#define ENTRY_FLAG_STRICT     's'
#define ENTRY_FLAG_IDEMPOTENT 'i'
#define ENTRY_FLAG_VERIFIABLE 'v'

struct kind;
/* The flags of a kind (NULL: an undeclared one waits its turn and fails with no_executor); how many
 * of `ret` are used. */
#define ENTRY_FLAGS_MAX 4
size_t entry_flags_of(const struct kind *kind, char ret[ENTRY_FLAGS_MAX]);

/* One entry. Spans live as long as the reply they came from (inside the callback), or as
 * entry_copy's memory. */
struct entry {
    struct span id, session; /* session: raw name */
    enum entry_status status;
    bool is_readable; /* false: the body can't be decoded (`body` is empty then) */
    struct entry_body body;
    struct span body_bytes; /* the msgpack that `body` points into */
    struct span digest, flags;
    int64_t accepted_at_ms, last_attempt_at_ms, last_end_at_ms, first_claim_at_ms,
        next_attempt_at_ms; /* 0: none */
    uint32_t attempts, verify_attempts, transient_fails, sends;
    uint32_t attempt_base; /* ledgers: attempts before the last retry by a person; never reused */
    struct span error_code, error_message; /* of lastError */
    struct span conflict_current, parked_reason;
    struct span deps;        /* what it waits for and is there: IDs, apart by blanks */
    struct span failed_deps; /* those of them that failed or are parked; told to who looks at it */
    struct span fills;      /* results for null members of its payload: JSON objects, a line each */
    struct span retry;      /* the ID that a person's last retry of it was known by */
    struct span root, part; /* a follow-up: the entry that it follows; `edit` or `remove` */
    struct span if_match;   /* the revision that it replaces, JSON */
    int64_t rank_ms; /* its place among all of the workspace, if not its acceptance's; else 0 */
    /* Agents that take no message ID: the last message before its first request, and the last one
     * that may be its own (empty: no later entry has been sent since it failed). */
    struct span baseline, until;
};

/* A copy in one allocation that outlives the reply; NULL when out of memory. Free with free(). */
struct entry *entry_copy(const struct entry *entry);

#endif
