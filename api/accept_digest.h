/* The digest of an accept request: what tells a repeat from another message under the same
 * clientMessageID. Pure. Contract §3. */
#ifndef API_ACCEPT_DIGEST_H
#define API_ACCEPT_DIGEST_H

#include "common/core/span.h"

struct entry_body;
struct json_tokens;

#define ACCEPT_DIGEST_LEN 32

/* Over everything that was accepted but the clientMessageID; hex and a NUL into `ret`. `tokens` are
 * those of `text`, in which model and payload stand. Members may stand in any order. 0, or -ENOMEM.
 * Stored for as long as the clientMessageID is remembered: a change here turns repeats into 422. */
int accept_digest_make(const struct entry_body *body, struct span text,
                       const struct json_tokens *tokens, char ret[ACCEPT_DIGEST_LEN + 1]);

#endif
