/* On jansson's trees. Only a payload that is changed is written anew; its numbers keep their
 * spelling. */
#include "common/core/payload_merge.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/core/json_exact.h"

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
    json_t *root = fills.len > 0 && payload.len > 0 ? json_exact_load(payload) : NULL;
    int filled = 0;

    *ret = payload;
    while (json_is_object(root) && fills.len > 0 && filled >= 0) {
        const char *end = memchr(fills.ptr, '\n', fills.len);
        const struct span line = {fills.ptr, end ? (size_t)(end - fills.ptr) : fills.len};
        json_t *result = json_exact_load(line);
        const int more = fill_from(root, result);

        filled = more < 0 ? -1 : filled + more;
        json_decref(result);
        fills.ptr += line.len + (end ? 1 : 0);
        fills.len -= line.len + (end ? 1 : 0);
    }
    int err = filled < 0 ? -ENOMEM : 0;

    if (filled > 0) {
        const size_t start = out->len;

        err = json_exact_dump(root, out);
        *ret = (struct span){out->bytes + start, out->len - start};
    }
    json_decref(root);
    return err;
}

int payload_result(struct span json, struct buf *out)
{
    json_t *root = json_exact_load(json);
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
        err = json_exact_dump(root, out);
    }
    json_decref(root);
    return err;
}
