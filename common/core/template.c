/* Templates: one walk that copies text and fills places. Never looks a value up itself. */
#include "common/core/template.h"

#include <errno.h>
#include <inttypes.h>

#include "common/core/keys.h"

#define LANE_FILLED_MAX 65536

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_name_char(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

/* The length of the place that begins at `at` ("{name}"), or 0 if none does. */
static size_t place_length(const char *at)
{
    size_t len = 1;

    if (at[0] != '{' || !is_letter(at[1])) {
        return 0;
    }
    while (is_name_char(at[len])) {
        len++;
    }
    return at[len] == '}' ? len + 1 : 0;
}

static int append_percent(struct span value, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    const bool is_dots = (value.len == 1 && value.ptr[0] == '.') ||
                         (value.len == 2 && value.ptr[0] == '.' && value.ptr[1] == '.');
    int err = 0;

    for (size_t i = 0; i < value.len && err == 0; i++) {
        const char c = value.ptr[i];

        if (!is_dots && (is_name_char(c) || c == '~')) {
            err = buf_append(out, &c, 1);
        } else {
            const char escaped[3] = {'%', hex[(unsigned char)c >> 4], hex[(unsigned char)c & 15]};

            err = buf_append(out, escaped, sizeof(escaped));
        }
    }
    return err;
}

int template_expand(const char *text, enum template_escape escape, template_lookup *lookup,
                    void *arg, struct buf *out, struct span *ret_place)
{
    int err = 0;

    for (const char *at = text; *at != '\0' && err == 0;) {
        const size_t len = place_length(at);

        if (len == 0) {
            err = buf_append(out, at, 1);
            at++;
            continue;
        }
        const struct span place = {at + 1, len - 2};
        struct span value = {"", 0};

        if (lookup(arg, place, &value) < 0 || (escape == TEMPLATE_PERCENT && value.len == 0)) {
            *ret_place = place;
            return -ENOENT;
        }
        err = escape == TEMPLATE_PERCENT ? append_percent(value, out)
                                         : buf_append(out, value.ptr, value.len);
        at += len;
    }
    return err;
}

int template_lane(const char *text, template_lookup *lookup, void *arg, struct buf *out,
                  struct span *ret_place)
{
    struct buf lane;
    int err;

    buf_init(&lane, LANE_FILLED_MAX);
    err = template_expand(text, TEMPLATE_PERCENT, lookup, arg, &lane, ret_place);
    if (err == 0 && lane.len > LANE_MAX) {
        err = buf_appendf(out, "lane-%016" PRIx64, fnv1a64(lane.bytes, lane.len));
    } else if (err == 0 && !session_name_is_valid(lane.bytes, lane.len)) {
        *ret_place = span_of(text);
        err = -ENOENT;
    } else if (err == 0) {
        err = buf_append(out, lane.bytes, lane.len);
    }
    buf_done(&lane);
    return err;
}
