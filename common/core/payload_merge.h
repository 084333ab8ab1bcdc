/* Changes of a payload: a person's edit, and results of what it waited for. Pure. A payload that is
 * not changed keeps the very text that the client sent. Contract §6. */
#ifndef COMMON_CORE_PAYLOAD_MERGE_H
#define COMMON_CORE_PAYLOAD_MERGE_H

#include <jansson.h>

#include "common/core/buf.h"
#include "common/core/span.h"

/* Both read by json_exact_load. Applies a JSON merge patch (RFC 7396) to `target`, in place where
 * both are objects. Returns a new reference, NULL when out of memory. */
json_t *payload_patched(json_t *target, const json_t *patch);

/* Members of the payload that are null take those of `fills`: results as JSON objects, each on a
 * line of its own, the first that knows a member counts. *ret is the payload itself if nothing
 * changed, else text in `out`. What can't be read changes nothing. 0 or -ENOMEM, -ENOBUFS. */
int payload_filled(struct span payload, struct span fills, struct buf *out, struct span *ret);

/* A result as it is kept: one line of compact JSON, without members that are null. Appended to
 * `out`. -EINVAL: no object, or nothing in it. */
int payload_result(struct span json, struct buf *out);

#endif
