/* A number becomes a string that begins with a mark no client can send and no sensible target does:
 * the API takes no NUL characters. */
#include "common/core/json_exact.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MARK       "\\u0000number:"
#define MARK_LEN   (sizeof(MARK) - 1)
#define MARKED_MAX ((size_t)512 << 20)

static bool is_of_number(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* How long the string is that begins here, its quotes included; to the end if it has none. */
static size_t string_len(const char *at, size_t left)
{
    size_t len = 1;

    while (len < left && at[len] != '"') {
        len += at[len] == '\\' ? 2 : 1;
    }
    return len < left ? len + 1 : left;
}

static size_t number_len(const char *at, size_t left)
{
    size_t len = 0;

    while (len < left && is_of_number(at[len])) {
        len++;
    }
    return len;
}

static int mark_numbers(struct span text, struct buf *out)
{
    for (size_t i = 0; i < text.len && !out->failed;) {
        const char *at = text.ptr + i;
        size_t len = 1;

        if (*at == '"') {
            len = string_len(at, text.len - i);
            buf_append(out, at, len);
        } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
            len = number_len(at, text.len - i);
            buf_append_str(out, "\"" MARK);
            buf_append(out, at, len);
            buf_append_str(out, "\"");
        } else {
            buf_append(out, at, 1);
        }
        i += len;
    }
    return out->failed ? -ENOMEM : 0;
}

json_t *json_exact_load(struct span text)
{
    /* The grammar of numbers is the library's to check; what C's types cannot hold is no mistake.
     */
    json_t *checked = json_loadb(text.ptr, text.len,
                                 JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    struct buf marked;
    json_t *root = NULL;

    if (!checked) {
        return NULL;
    }
    json_decref(checked);
    buf_init(&marked, MARKED_MAX);
    if (mark_numbers(text, &marked) == 0) {
        root = json_loadb(marked.bytes, marked.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    }
    buf_done(&marked);
    return root;
}

int json_exact_dump(const json_t *root, struct buf *out)
{
    char *text = json_dumps(root, JSON_ENCODE_ANY | JSON_COMPACT);
    int err = text ? 0 : -ENOMEM;

    const char *at = text;
    const char *end = text ? text + strlen(text) : NULL;

    while (err == 0 && at < end) {
        const size_t left = (size_t)(end - at);
        const size_t plain = strcspn(at, "\"");
        const size_t len = plain < left ? string_len(at + plain, left - plain) : 0;

        err = buf_append(out, at, plain);
        if (err < 0) {
            break;
        }
        at += plain;
        if (len > MARK_LEN + 2 && memcmp(at + 1, MARK, MARK_LEN) == 0) {
            err = buf_append(out, at + 1 + MARK_LEN, len - 2 - MARK_LEN);
        } else {
            err = buf_append(out, at, len);
        }
        at += len;
    }
    free(text);
    return err;
}
