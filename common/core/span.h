/* Bytes that somebody else owns. */
#ifndef COMMON_CORE_SPAN_H
#define COMMON_CORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *ptr; /* not NUL-terminated; may be NULL when len is 0 */
    size_t len;
};

static inline struct span span_of(const char *str)
{
    return (struct span){str, str ? strlen(str) : 0};
}

/* As a string in `room`, cut if it does not fit. */
static inline const char *span_text(struct span span, char *room, size_t size)
{
    const size_t len = span.len < size ? span.len : size - 1;

    if (len > 0) {
        memcpy(room, span.ptr, len);
    }
    room[len] = '\0';
    return room;
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

#endif
