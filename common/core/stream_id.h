/* IDs of a stream's entries: the store's time in milliseconds, and a number within it. Pure. */
#ifndef COMMON_CORE_STREAM_ID_H
#define COMMON_CORE_STREAM_ID_H

#include <stdint.h>

#include "common/core/span.h"

#define STREAM_ID_TEXT_MAX 42 /* two numbers of 20 digits, the dash, a NUL */

struct stream_id {
    uint64_t ms, seq; /* both 0: before the first one */
};

/* <0, 0, >0 */
int stream_id_compare(struct stream_id a, struct stream_id b);
static inline struct stream_id stream_id_later(struct stream_id a, struct stream_id b)
{
    return stream_id_compare(a, b) < 0 ? b : a;
}
/* "ms-seq" as the store writes it (no sign, no leading zeroes); 0 or -EINVAL. */
int stream_id_parse(struct span text, struct stream_id *ret);
/* Returns the length; a NUL follows. */
size_t stream_id_format(struct stream_id id, char out[STREAM_ID_TEXT_MAX]);

#endif
