/* Line by line; lines end with LF, CR or both. */
#include "api/ctl/sse.h"

#include <errno.h>

#define LINE_MAX_LEN ((size_t)4 << 20)

void sse_init(struct sse *sse, struct span last_id, sse_event_fn *on_event, void *arg)
{
    *sse = (struct sse){.on_event = on_event, .arg = arg};
    buf_init(&sse->line, LINE_MAX_LEN);
    buf_init(&sse->name, LINE_MAX_LEN);
    buf_init(&sse->data, LINE_MAX_LEN);
    buf_init(&sse->id, LINE_MAX_LEN);
    buf_init(&sse->last_id, LINE_MAX_LEN);
    (void)buf_append(&sse->id, last_id.ptr, last_id.len);
    (void)buf_append(&sse->last_id, last_id.ptr, last_id.len);
}

void sse_done(struct sse *sse)
{
    buf_done(&sse->line);
    buf_done(&sse->name);
    buf_done(&sse->data);
    buf_done(&sse->id);
    buf_done(&sse->last_id);
}

static void set(struct buf *b, struct span bytes)
{
    buf_reset(b);
    (void)buf_append(b, bytes.ptr, bytes.len);
}

static struct span span_of_buf(const struct buf *b)
{
    return (struct span){b->len > 0 ? b->bytes : "", b->len};
}

void sse_restart(struct sse *sse)
{
    buf_reset(&sse->line);
    buf_reset(&sse->name);
    buf_reset(&sse->data);
    set(&sse->id, span_of_buf(&sse->last_id));
    sse->is_after_cr = false;
}

static void end_event(struct sse *sse)
{
    set(&sse->last_id, span_of_buf(&sse->id));
    if (sse->data.len > 0) {
        const struct sse_event event = {
            .name = sse->name.len > 0 ? span_of_buf(&sse->name) : span_of("message"),
            .data = {sse->data.bytes, sse->data.len - 1}, /* without the last line feed */
            .last_id = span_of_buf(&sse->last_id),
        };

        sse->on_event(&event, sse->arg);
    }
    buf_reset(&sse->name);
    buf_reset(&sse->data);
}

static void end_line(struct sse *sse)
{
    const struct span line = span_of_buf(&sse->line);
    const char *colon = line.len > 0 ? memchr(line.ptr, ':', line.len) : NULL;
    const struct span field = {line.ptr, colon ? (size_t)(colon - line.ptr) : line.len};
    struct span value = {"", 0};

    if (line.len == 0) {
        end_event(sse);
        return;
    }
    if (colon) {
        value = (struct span){colon + 1, line.len - field.len - 1};
        if (value.len > 0 && value.ptr[0] == ' ') {
            value.ptr++, value.len--;
        }
    }
    if (span_equal(field, span_of("event"))) {
        set(&sse->name, value);
    } else if (span_equal(field, span_of("data"))) {
        (void)buf_append(&sse->data, value.ptr, value.len);
        (void)buf_append(&sse->data, "\n", 1);
    } else if (span_equal(field, span_of("id")) &&
               (value.len == 0 || !memchr(value.ptr, '\0', value.len))) {
        set(&sse->id, value);
    }
}

int sse_feed(struct sse *sse, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        const char c = bytes.ptr[i];
        const bool is_second = sse->is_after_cr && c == '\n';

        sse->is_after_cr = c == '\r';
        if (is_second) {
            continue;
        }
        if (c == '\n' || c == '\r') {
            end_line(sse);
            buf_reset(&sse->line);
        } else {
            (void)buf_append(&sse->line, &c, 1);
        }
        if (sse->line.failed || sse->data.failed || sse->name.failed || sse->id.failed ||
            sse->last_id.failed) {
            return -ENOBUFS;
        }
    }
    return 0;
}
