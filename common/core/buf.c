/* A byte buffer with a hard maximum. Grows by doubling; a failure frees everything and sticks, so
 * that a chain of appends is checked once. */
#include "common/core/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64u

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    free(b->bytes);
    *b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->bytes) {
        b->bytes[0] = '\0';
    }
}

static int fail(struct buf *b, int err)
{
    free(b->bytes);
    *b = (struct buf){.max = b->max, .failed = true};
    return err;
}

/* Makes room for `extra` bytes and the NUL behind them. */
static int reserve(struct buf *b, size_t extra)
{
    if (b->failed) {
        return -ENOBUFS;
    }
    if (b->len > b->max || extra > b->max - b->len || b->max == SIZE_MAX) {
        return fail(b, -ENOBUFS);
    }
    size_t need = b->len + extra + 1;
    if (need <= b->cap) {
        return 0;
    }
    size_t cap = b->cap ? b->cap : FIRST_CAPACITY;
    while (cap < need) {
        cap = cap > b->max / 2 ? b->max + 1 : cap * 2;
    }
    char *bytes = realloc(b->bytes, cap);
    if (!bytes) {
        return fail(b, -ENOMEM);
    }
    b->bytes = bytes;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *bytes, size_t len)
{
    int err = reserve(b, len);

    if (err < 0) {
        return err;
    }
    if (len) {
        memcpy(b->bytes + b->len, bytes, len);
    }
    b->len += len;
    b->bytes[b->len] = '\0';
    return 0;
}

int buf_append_str(struct buf *b, const char *str)
{
    return buf_append(b, str, strlen(str));
}

int buf_vappendf(struct buf *b, const char *format, va_list args)
{
    va_list measure;

    if (b->failed) {
        return -ENOBUFS;
    }
    va_copy(measure, args);
    int len = vsnprintf(NULL, 0, format, measure);
    va_end(measure);
    if (len < 0) {
        return fail(b, -ENOMEM);
    }
    int err = reserve(b, (size_t)len);
    if (err < 0) {
        return err;
    }
    (void)vsnprintf(b->bytes + b->len, (size_t)len + 1, format, args); /* measured above */
    b->len += (size_t)len;
    return 0;
}

int buf_appendf(struct buf *b, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int err = buf_vappendf(b, format, args);
    va_end(args);
    return err;
}

char *buf_steal(struct buf *b, size_t *ret_len)
{
    if (b->failed ||
        buf_append(b, "", 0) < 0) { /* an empty buffer has no memory yet: hand over "" */
        return NULL;
    }
    char *bytes = b->bytes;

    if (ret_len) {
        *ret_len = b->len;
    }
    *b = (struct buf){.max = b->max};
    return bytes;
}
