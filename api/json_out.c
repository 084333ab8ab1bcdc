/* Writes JSON into a buffer. */
#include "api/json_out.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/core/utf8.h"

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void put_special(struct buf *out, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *hit = c ? strchr(from, c) : NULL;

    if (hit) {
        char pair[2] = {'\\', to[hit - from]};

        (void)buf_append(out, pair, sizeof(pair));
    } else {
        (void)buf_appendf(out, "\\u%04x", c);
    }
}

void json_put_string(struct buf *out, struct span text)
{
    size_t at = 0;

    (void)buf_append(out, "\"", 1);
    while (at < text.len) {
        size_t begin = at;
        uint32_t code;

        while (at < text.len && is_plain((unsigned char)text.ptr[at])) {
            at++;
        }
        (void)buf_append(out, text.ptr + begin, at - begin);
        if (at == text.len) {
            break;
        }
        if ((unsigned char)text.ptr[at] < 0x80) {
            put_special(out, (unsigned char)text.ptr[at++]);
            continue;
        }
        size_t len = utf8_next(text.ptr + at, text.len - at, &code);

        (void)buf_append(out, len ? text.ptr + at : "\xef\xbf\xbd", len ? len : 3);
        at += len ? len : 1;
    }
    (void)buf_append(out, "\"", 1);
}

void json_member_name(struct buf *out, const char *name)
{
    (void)buf_append(out, "\"", 1);
    (void)buf_append_str(out, name);
    (void)buf_append(out, "\":", 2);
}

void json_member_raw(struct buf *out, const char *name, struct span json)
{
    if (json.len == 0) {
        return;
    }
    json_member_name(out, name);
    (void)buf_append(out, json.ptr, json.len);
    json_comma(out);
}

void json_member_string(struct buf *out, const char *name, struct span text)
{
    json_member_name(out, name);
    json_put_string(out, text);
    json_comma(out);
}

void json_member_text(struct buf *out, const char *name, struct span text)
{
    if (text.len > 0) {
        json_member_string(out, name, text);
    }
}

void json_member_i64(struct buf *out, const char *name, int64_t value)
{
    json_member_name(out, name);
    (void)buf_appendf(out, "%" PRId64 ",", value);
}

void json_member_bool(struct buf *out, const char *name, bool value)
{
    json_member_name(out, name);
    (void)buf_append_str(out, value ? "true," : "false,");
}

void json_member_time(struct buf *out, const char *name, int64_t wall_ms)
{
    char text[32];

    if (wall_ms <= 0) {
        return;
    }
    clock_format_rfc3339(wall_ms, text);
    json_member_name(out, name);
    (void)buf_appendf(out, "\"%s\",", text);
}

void json_member_seconds(struct buf *out, const char *name, int64_t ms)
{
    int64_t whole = ms > 0 ? ms : 0;

    json_member_name(out, name);
    (void)buf_appendf(out, "%" PRId64 ".%03d,", whole / 1000, (int)(whole % 1000));
}

void json_open(struct buf *out, char bracket)
{
    (void)buf_append(out, &bracket, 1);
}

void json_open_member(struct buf *out, const char *name, char bracket)
{
    json_member_name(out, name);
    json_open(out, bracket);
}

void json_close(struct buf *out, char bracket)
{
    if (!out->failed && out->len > 0 && out->bytes[out->len - 1] == ',') {
        out->len--;
    }
    (void)buf_append(out, &bracket, 1);
}

void json_comma(struct buf *out)
{
    (void)buf_append(out, ",", 1);
}
