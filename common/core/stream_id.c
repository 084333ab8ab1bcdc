/* Reads and writes stream IDs strictly: what is read is what would have been written. */
#include "common/core/stream_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int stream_id_compare(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms) {
        return a.ms < b.ms ? -1 : 1;
    }
    return a.seq < b.seq ? -1 : a.seq > b.seq;
}

static int parse_number(struct span text, uint64_t *ret)
{
    uint64_t value = 0;

    if (text.len == 0 || (text.len > 1 && text.ptr[0] == '0')) {
        return -EINVAL;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' ||
            __builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value)) {
            return -EINVAL;
        }
    }
    *ret = value;
    return 0;
}

int stream_id_parse(struct span text, struct stream_id *ret)
{
    const char *dash = text.len > 0 ? memchr(text.ptr, '-', text.len) : NULL;
    struct stream_id id;

    if (!dash) {
        return -EINVAL;
    }
    const size_t ms_len = (size_t)(dash - text.ptr);

    if (parse_number((struct span){text.ptr, ms_len}, &id.ms) < 0 ||
        parse_number((struct span){dash + 1, text.len - ms_len - 1}, &id.seq) < 0) {
        return -EINVAL;
    }
    *ret = id;
    return 0;
}

size_t stream_id_format(struct stream_id id, char out[STREAM_ID_TEXT_MAX])
{
    return (size_t)snprintf(out, STREAM_ID_TEXT_MAX, "%" PRIu64 "-%" PRIu64, id.ms, id.seq);
}
