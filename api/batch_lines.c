/* JSON escapes every end of a line within its texts: one that stands there ends a message. */
#include "api/batch_lines.h"

bool batch_lines_next(struct batch_lines *lines, struct span *ret)
{
    struct span *rest = &lines->rest;

    if (rest->len == 0) {
        return false;
    }
    const char *end = memchr(rest->ptr, '\n', rest->len);
    struct span line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    const size_t used = line.len + (end ? 1 : 0);

    rest->ptr += used;
    rest->len -= used;
    if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    *ret = line;
    return true;
}

size_t batch_lines_count(struct span body, size_t max)
{
    struct batch_lines lines = {body};
    struct span line;
    size_t count = 0;

    while (count <= max && batch_lines_next(&lines, &line)) {
        count++;
    }
    return count;
}
