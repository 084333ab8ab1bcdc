/* Finds one HTTP/1.1 message at the start of some bytes: what the load generator and the target of
 * the benchmark need, and no more. Pure. Bodies by Content-Length only; a chunked one is an error.
 */
#ifndef TESTS_BENCH_HTTP_FRAME_H
#define TESTS_BENCH_HTTP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"

struct http_frame {
    struct span start_line; /* without its line end; spans point into the bytes given */
    struct span body;
    bool is_last; /* Connection: close */
};

/* Returns the message's whole length, 0 while it is not complete, or -EBADMSG. */
int64_t http_frame_read(const char *bytes, size_t len, struct http_frame *ret);
/* The second word of a start line: a request's path, an answer's status. */
struct span http_frame_word(const struct http_frame *frame);

#endif
