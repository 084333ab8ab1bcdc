/* Framing of HTTP/1.1 messages, see the header. Names and values are compared as the few that
 * matter are written by the programs measured; everything else in a head is skipped. */
#include "tests/bench/http_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#define BODY_MAX (16U * 1024 * 1024)

struct head {
    uint64_t content_length;
    bool is_last, is_chunked;
};

static bool value_of(struct span line, const char *name, struct span *ret_value)
{
    size_t len = strlen(name);

    if (line.len <= len || line.ptr[len] != ':' || strncasecmp(line.ptr, name, len) != 0) {
        return false;
    }
    const char *at = line.ptr + len + 1, *end = line.ptr + line.len;

    while (at < end && *at == ' ') {
        at++;
    }
    *ret_value = (struct span){at, (size_t)(end - at)};
    return true;
}

static int read_length(struct span text, uint64_t *ret)
{
    uint64_t n = 0;

    if (text.len == 0) {
        return -EBADMSG;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || n > BODY_MAX) {
            return -EBADMSG;
        }
        n = n * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret = n;
    return n > BODY_MAX ? -EBADMSG : 0;
}

static int read_field(struct span line, struct head *head)
{
    struct span value;

    if (value_of(line, "content-length", &value)) {
        return read_length(value, &head->content_length);
    }
    if (value_of(line, "connection", &value)) {
        head->is_last = value.len == 5 && strncasecmp(value.ptr, "close", 5) == 0;
    } else if (value_of(line, "transfer-encoding", &value)) {
        head->is_chunked = true;
    }
    return 0;
}

int64_t http_frame_read(const char *bytes, size_t len, struct http_frame *ret)
{
    const char *blank = len ? memmem(bytes, len, "\r\n\r\n", 4) : NULL;
    struct head head = {0};
    struct span start = {0};

    if (!blank) {
        return 0;
    }
    for (const char *at = bytes; at < blank;) {
        const char *end = memmem(at, (size_t)(blank + 2 - at), "\r\n", 2);
        struct span line = {at, (size_t)(end - at)};

        if (at == bytes) {
            start = line;
        } else if (read_field(line, &head) < 0) {
            return -EBADMSG;
        }
        at = end + 2;
    }
    if (head.is_chunked || !start.len) {
        return -EBADMSG;
    }
    size_t head_len = (size_t)(blank + 4 - bytes);

    if (len - head_len < head.content_length) {
        return 0;
    }
    *ret = (struct http_frame){
        .start_line = start,
        .body = {blank + 4, head.content_length},
        .is_last = head.is_last,
    };
    return (int64_t)(head_len + head.content_length);
}

struct span http_frame_word(const struct http_frame *frame)
{
    const struct span line = frame->start_line;
    const char *end = line.ptr + line.len, *first = memchr(line.ptr, ' ', line.len);

    if (!first) {
        return (struct span){0};
    }
    first++;
    const char *last = memchr(first, ' ', (size_t)(end - first));

    return (struct span){first, (size_t)((last ? last : end) - first)};
}
