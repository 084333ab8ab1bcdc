/* The signature by which a target knows that a request is ours and unchanged: Standard Webhooks,
 * HMAC-SHA256 over "id.timestamp.body". Pure. Contract §4.
 *
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
#ifndef WORKER_WEBHOOK_SIGNATURE_H
#define WORKER_WEBHOOK_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/buf.h"
#include "common/core/span.h"

/* Appends the value of `webhook-signature`: one signature by each secret (whsec_…), separated by
 * blanks, so that a target may know the old one or the new one. 0, -EINVAL: a secret is none;
 * -ENOMEM, -ENOBUFS. */
int webhook_signature_write(const char *const *secrets, size_t count, struct span id,
                            int64_t timestamp_s, struct span body, struct buf *out);

#endif
