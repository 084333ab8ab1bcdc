/* On jansson's trees. Numbers that no C type holds are read as reals: only a payload that is
 * changed is written anew. */
#include "common/core/payload_merge.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(struct span text)
{
    json_t *root = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    return root ? root
                : json_loadb(text.ptr, text.len,
                             JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

static int dump(const json_t *root, struct buf *out)
{
    char *text = json_dumps(root, JSON_ENCODE_ANY | JSON_COMPACT);
    const int err = text ? buf_append_str(out, text) : -ENOMEM;

    free(text);
    return err;
}

json_t *payload_patched(json_t *target, const json_t *patch)
{
    const char *name;
    const json_t *value;

    if (!json_is_object(patch)) {
        return json_deep_copy(patch);
    }
    json_t *result = json_is_object(target) ? json_incref(target) : json_object();

    json_object_foreach((json_t *)(uintptr_t)patch, name, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(result, name); /* absent already: fine */
            continue;
        }
        json_t *merged = payload_patched(json_object_get(result, name), value);

        if (!merged || json_object_set_new(result, name, merged) < 0) {
            json_decref(result);
            return NULL;
        }
    }
    return result;
}

/* How many members it filled; -1 when out of memory. */
static int fill_from(json_t *payload, const json_t *result)
{
    const char *name;
    json_t *value;
    int filled = 0;

    json_object_foreach((json_t *)(uintptr_t)result, name, value)
    {
        const json_t *own = json_object_get(payload, name);

        if (!own || !json_is_null(own) || json_is_null(value)) {
            continue;
        }
        if (json_object_set(payload, name, value) < 0) {
            return -1;
        }
        filled++;
    }
    return filled;
}

int payload_filled(struct span payload, struct span fills, struct buf *out, struct span *ret)
{
    json_t *root = fills.len > 0 && payload.len > 0 ? load(payload) : NULL;
    int filled = 0;

    *ret = payload;
    while (json_is_object(root) && fills.len > 0 && filled >= 0) {
        const char *end = memchr(fills.ptr, '\n', fills.len);
        const struct span line = {fills.ptr, end ? (size_t)(end - fills.ptr) : fills.len};
        json_t *result = load(line);
        const int more = fill_from(root, result);

        filled = more < 0 ? -1 : filled + more;
        json_decref(result);
        fills.ptr += line.len + (end ? 1 : 0);
        fills.len -= line.len + (end ? 1 : 0);
    }
    int err = filled < 0 ? -ENOMEM : 0;

    if (filled > 0) {
        const size_t start = out->len;

        err = dump(root, out);
        *ret = (struct span){out->bytes + start, out->len - start};
    }
    json_decref(root);
    return err;
}

int payload_result(struct span json, struct buf *out)
{
    json_t *root = load(json);
    const char *name;
    json_t *value;
    void *next;
    int err = -EINVAL;

    json_object_foreach_safe(root, next, name, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(root, name);
        }
    }
    if (json_object_size(root) > 0) {
        err = dump(root, out);
    }
    json_decref(root);
    return err;
}
