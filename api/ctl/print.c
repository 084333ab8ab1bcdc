/* Ages, latencies, rates, and texts made safe for a terminal. Pure; a width is a good guess from
 * the code point (no locale is asked), good enough to align columns. */
#include "api/ctl/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/core/buf.h"
#include "common/core/span.h"
#include "common/core/utf8.h"

void print_age(int64_t ms, char out[PRINT_MAX])
{
    const int64_t seconds = ms > 0 ? ms / 1000 : 0;

    if (ms < 10000) {
        const int64_t tenths = ms > 0 ? ms / 100 : 0;

        snprintf(out, PRINT_MAX, "%" PRId64 ".%" PRId64 "s", tenths / 10, tenths % 10);
    } else if (seconds < 60) {
        snprintf(out, PRINT_MAX, "%" PRId64 "s", seconds);
    } else if (seconds < 3600) {
        snprintf(out, PRINT_MAX, "%" PRId64 "m%02" PRId64 "s", seconds / 60, seconds % 60);
    } else if (seconds < 86400) {
        snprintf(out, PRINT_MAX, "%" PRId64 "h%02" PRId64 "m", seconds / 3600, seconds / 60 % 60);
    } else {
        snprintf(out, PRINT_MAX, "%" PRId64 "d%02" PRId64 "h", seconds / 86400,
                 seconds / 3600 % 24);
    }
}

void print_latency(double seconds, char out[PRINT_MAX])
{
    if (!(seconds >= 0)) {
        snprintf(out, PRINT_MAX, "-");
    } else if (seconds < 0.001) {
        snprintf(out, PRINT_MAX, "%.0fus", seconds * 1e6);
    } else if (seconds < 0.1) {
        snprintf(out, PRINT_MAX, "%.1fms", seconds * 1e3);
    } else if (seconds < 1) {
        snprintf(out, PRINT_MAX, "%.0fms", seconds * 1e3);
    } else {
        snprintf(out, PRINT_MAX, "%.1fs", seconds < 1e9 ? seconds : 1e9);
    }
}

void print_rate(double per_second, char out[PRINT_MAX])
{
    const double rate = per_second > 0 ? per_second : 0;
    const int digits = rate <= 0 || rate >= 1000 ? 0 : rate < 1 ? 2 : 1;

    snprintf(out, PRINT_MAX, "%.*f/s", digits, rate < 1e15 ? rate : 1e15);
}

int print_parse_time(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0};
    const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    char *end;

    if (!at || at[0] != '.' || at[1] < '0' || at[1] > '9') {
        return -EINVAL;
    }
    const long ms = strtol(at + 1, &end, 10);

    if (end != at + 4 || strcmp(end, "Z") != 0) {
        return -EINVAL;
    }
    *ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
    return 0;
}

/* ---- text of others ---- */

static bool is_harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ||       /* control characters */
           c == 0x061c || c == 0x200e || c == 0x200f || /* direction marks */
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void append_safe(struct buf *out, struct span text, bool keeps_lines)
{
    for (size_t at = 0; at < text.len;) {
        uint32_t c = 0;
        const size_t len = utf8_next(text.ptr + at, text.len - at, &c);

        if (len > 0 && (c == '\t' || c == '\n')) {
            buf_append_str(out, c == '\n' && keeps_lines ? "\n" : " ");
        } else if (len == 0 || is_harmful(c)) {
            buf_append_str(out, "?");
        } else {
            buf_append(out, text.ptr + at, len);
        }
        at += len > 0 ? len : 1;
    }
}

void print_safe(struct buf *out, struct span text)
{
    append_safe(out, text, false);
}

void print_safe_lines(struct buf *out, struct span text)
{
    append_safe(out, text, true);
}

static size_t columns_of(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        size_t columns;
    } ranges[] = {
        {0x0300, 0x036f, 0},   {0x200b, 0x200d, 0},   {0x20d0, 0x20ff, 0}, {0xfe00, 0xfe0f, 0},
        {0x1100, 0x115f, 2},   {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2}, {0xac00, 0xd7a3, 2},
        {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2},
        {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return ranges[i].columns;
        }
    }
    return 1;
}

size_t print_fit(struct span text, size_t columns)
{
    size_t at = 0;

    for (size_t used = 0; at < text.len;) {
        uint32_t c = 0xfffd;
        const size_t len = utf8_next(text.ptr + at, text.len - at, &c);

        used += columns_of(c);
        if (used > columns) {
            break;
        }
        at += len > 0 ? len : 1;
    }
    return at;
}

size_t print_width(struct span text)
{
    size_t columns = 0;

    for (size_t at = 0; at < text.len;) {
        uint32_t c = 0xfffd;
        const size_t len = utf8_next(text.ptr + at, text.len - at, &c);

        columns += columns_of(c);
        at += len > 0 ? len : 1;
    }
    return columns;
}

void print_wrapped(struct buf *out, const char *text, size_t column, size_t indent, size_t columns)
{
    bool is_first = true;

    while (*text) {
        const size_t len = strcspn(text, " \n");
        const size_t width = print_width((struct span){text, len});

        if (!is_first && columns > 0 && column + 1 + width > columns) {
            (void)buf_appendf(out, "\n%*s", (int)indent, "");
            column = indent;
            is_first = true;
        }
        (void)buf_appendf(out, "%s%.*s", is_first ? "" : " ", (int)len, text);
        column += width + !is_first;
        is_first = false;
        text += len;
        if (*text == '\n') {
            (void)buf_appendf(out, "\n%*s", (int)indent, "");
            column = indent;
            is_first = true;
        }
        text += *text != '\0';
    }
    (void)buf_append_str(out, "\n");
}
