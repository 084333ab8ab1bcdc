/* How opencode is asked: URLs below a target, and the prompt's body. Nothing is sent here. */
#ifndef WORKER_OPENCODE_REQUEST_H
#define WORKER_OPENCODE_REQUEST_H

#include "common/core/buf.h"
#include "common/store/entry.h"
#include "worker/target.h"

struct opencode_ids;
struct transfer_request;

/* Writes `<target>/global/health`. 0; -EINVAL: no target is configured; -ENOMEM, -ENOBUFS. */
int opencode_health_url(const struct target *target, struct buf *out);
/* Writes `<target>/session/{session}/message` and `rest` ("", "/msg_…", "?limit=…"). */
int opencode_message_url(const struct target *target, struct span session, const char *rest,
                         struct buf *out);
/* Text and model as they were accepted; `ids` may be NULL. 0, -EINVAL (an entry without a text),
 * -ENOMEM. */
int opencode_prompt_body(const struct entry *entry, const struct opencode_ids *ids,
                         struct buf *out);
/* A GET with the target's credentials (a password alone is the server's own user's, `opencode`);
 * `url` must live until it was started. */
struct transfer_request opencode_get(const struct target *target, const char *url,
                                     int64_t timeout_ms);

#endif
