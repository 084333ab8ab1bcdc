/* From templates and an item to the bytes of one POST. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/load.h"

#define HEAD_MAX       4096
#define PATH_MAX_BYTES 2048U

void load_item_id(const struct load_options *options, const struct load_item *item, char *out,
                  size_t cap)
{
    snprintf(out, cap, "lg1-%s-%06u-%08u", options->tag, item->session, item->seq);
}

static void too_long(void)
{
    fprintf(stderr, "load: a request does not fit\n");
    exit(1);
}

/* Text for the word at `at` ("{id}"), or NULL if it is none. */
static const char *word(const struct load_options *options, const struct load_item *item,
                        const char *at, char *room, size_t cap, size_t *ret_len)
{
    static const char *const names[] = {"{id}", "{workspace}", "{session}", "{seq}"};
    size_t i = 0;

    while (i < 4 && strncmp(at, names[i], strlen(names[i])) != 0) {
        i++;
    }
    if (i == 4) {
        return NULL;
    }
    *ret_len = strlen(names[i]);
    if (i == 0) {
        load_item_id(options, item, room, cap);
    } else if (i == 1) {
        snprintf(room, cap, "bench-%u", item->session % options->workspaces);
    } else {
        snprintf(room, cap, i == 2 ? "session-%u" : "%u", i == 2 ? item->session : item->seq);
    }
    return room;
}

/* Expands a template; {pad} becomes `pad` times x. Returns the length. */
static size_t expand(const struct load_options *options, const struct load_item *item,
                     const char *template, size_t pad, char *out, size_t cap)
{
    size_t n = 0;

    for (const char *at = template; *at != '\0';) {
        char room[64];
        size_t word_len = 1;
        const char *text = *at == '{' ? word(options, item, at, room, sizeof(room), &word_len) : at;
        size_t len = text == at ? 1 : text ? strlen(text) : 0;

        if (!text && strncmp(at, "{pad}", 5) == 0) {
            if (n + pad >= cap) {
                too_long();
            }
            memset(out + n, 'x', pad);
            n += pad;
            at += 5;
            continue;
        }
        if (!text) { /* a brace of the JSON itself */
            text = at;
            len = 1;
        }
        if (n + len >= cap) {
            too_long();
        }
        memcpy(out + n, text, len);
        n += len;
        at += word_len;
    }
    out[n] = '\0';
    return n;
}

size_t load_request_max(const struct load_options *options)
{
    return LOAD_REQUEST_MAX +
           (size_t)options->batch * ((size_t)options->body_bytes + strlen(options->body) + 256);
}

/* One message's body, padded. */
static size_t put_message(const struct load_options *options, const struct load_item *item,
                          char *out, size_t cap)
{
    const size_t len = expand(options, item, options->body, 0, out, cap);

    return len < options->body_bytes
               ? expand(options, item, options->body, options->body_bytes - len, out, cap)
               : len;
}

size_t load_request(const struct load_options *options, const struct load_item *items, size_t count,
                    char *out)
{
    static char path[PATH_MAX_BYTES];
    const size_t max = load_request_max(options);
    char head[HEAD_MAX];
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        len += put_message(options, &items[i], out + HEAD_MAX + len, max - HEAD_MAX - len);
        if (options->batch > 0) {
            out[HEAD_MAX + len++] = '\n';
        }
    }
    expand(options, items, options->path, 0, path, sizeof(path));
    const int head_len =
        snprintf(head, sizeof(head),
                 "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                 "Content-Type: application/%s\r\nContent-Length: %zu\r\n\r\n",
                 path, options->port, options->batch > 0 ? "x-ndjson" : "json", len);

    if (head_len < 0 || head_len >= HEAD_MAX) {
        too_long();
    }
    memmove(out + head_len, out + HEAD_MAX, len);
    memcpy(out, head, (size_t)head_len);
    return (size_t)head_len + len;
}
