/* Copies an entry out of a reply that is about to die, in one allocation. */
#include <stdint.h>
#include <stdlib.h>

#include "common/store/entry.h"

/* Every span of an entry, except the body's dependencies and `body_bytes` itself. */
static const size_t offsets[] = {
    offsetof(struct entry, id),
    offsetof(struct entry, session),
    offsetof(struct entry, body.client_message_id),
    offsetof(struct entry, body.user_id),
    offsetof(struct entry, body.kind),
    offsetof(struct entry, body.text),
    offsetof(struct entry, body.model),
    offsetof(struct entry, body.payload),
    offsetof(struct entry, body.traceparent),
    offsetof(struct entry, digest),
    offsetof(struct entry, flags),
    offsetof(struct entry, error_code),
    offsetof(struct entry, error_message),
    offsetof(struct entry, conflict_current),
    offsetof(struct entry, parked_reason),
    offsetof(struct entry, baseline),
    offsetof(struct entry, until),
    offsetof(struct entry, deps),
    offsetof(struct entry, failed_deps),
    offsetof(struct entry, fills),
    offsetof(struct entry, root),
    offsetof(struct entry, retry),
    offsetof(struct entry, part),
    offsetof(struct entry, if_match),
};
#define OFFSET_COUNT (sizeof(offsets) / sizeof(offsets[0]))

static struct span *span_at(struct entry *entry, size_t i)
{
    if (i < OFFSET_COUNT) {
        return (struct span *)(void *)((char *)entry + offsets[i]);
    }
    return &entry->body.depends_on[i - OFFSET_COUNT];
}

/* Whether a span lies in the body's msgpack, which is copied as a whole. */
static bool is_within(struct span part, struct span whole)
{
    uintptr_t start = (uintptr_t)whole.ptr;
    uintptr_t at = (uintptr_t)part.ptr;

    return at >= start && at - start <= whole.len && part.len <= whole.len - (at - start);
}

static char *put(char *at, struct span *span)
{
    if (span->len > 0) {
        memcpy(at, span->ptr, span->len);
    }
    span->ptr = at;
    return at + span->len;
}

struct entry *entry_copy(const struct entry *entry)
{
    struct entry local = *entry;
    struct span body_bytes = entry->body_bytes;
    size_t count = OFFSET_COUNT + entry->body.depends_on_count;
    size_t total = body_bytes.len;

    for (size_t i = 0; i < count; i++) {
        struct span span = *span_at(&local, i);

        total += is_within(span, body_bytes) ? 0 : span.len;
    }
    struct entry *copy = malloc(sizeof(*copy) + total);

    if (!copy) {
        return NULL;
    }
    *copy = local;
    char *at = put((char *)(copy + 1), &copy->body_bytes);

    for (size_t i = 0; i < count; i++) {
        struct span *span = span_at(copy, i);

        if (is_within(*span, body_bytes)) {
            span->ptr = copy->body_bytes.ptr + (span->ptr - body_bytes.ptr);
        } else {
            at = put(at, span);
        }
    }
    return copy;
}
