/* A byte buffer that grows up to a hard maximum. A failed append frees what it held and marks the
 * buffer failed, so that a chain of appends is checked once at its end. */
#ifndef COMMON_CORE_BUF_H
#define COMMON_CORE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *bytes; /* owned; always followed by a NUL that is not counted; NULL while empty */
    size_t len, cap, max;
    bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);  /* frees; usable again only after buf_init */
void buf_reset(struct buf *b); /* len = 0, memory kept, failed cleared */
/* All return 0, -ENOBUFS beyond the maximum or -ENOMEM; after a failure every further append fails
 * too. */
int buf_append(struct buf *b, const void *bytes, size_t len);
int buf_append_str(struct buf *b, const char *str);
int buf_appendf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vappendf(struct buf *b, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* Hands the bytes over (caller frees with free()); NULL if failed or out of memory. The buffer is
 * empty then. */
char *buf_steal(struct buf *b, size_t *ret_len);

#endif
