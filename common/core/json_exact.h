/* JSON that is read, changed and written again without a number losing a digit or its spelling:
 * the JSON library holds them in C's types, which hold neither 12345678901234567890 nor 1.10. Pure.
 */
#ifndef COMMON_CORE_JSON_EXACT_H
#define COMMON_CORE_JSON_EXACT_H

#include <jansson.h>

#include "common/core/buf.h"
#include "common/core/span.h"

/* A tree in which numbers stand as strings that only json_exact_dump knows; for taking apart and
 * putting together, not for looking at numbers. NULL: not JSON, or out of memory. */
json_t *json_exact_load(struct span text);
/* Appends it as compact JSON. Takes what json_exact_load read, and parts of it. 0, -ENOMEM or
 * -ENOBUFS. */
int json_exact_dump(const json_t *root, struct buf *out);

#endif
