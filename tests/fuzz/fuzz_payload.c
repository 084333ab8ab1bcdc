/* JSON that is kept exactly: patches of people, results that fill, values of templates. An input is
 * a payload, a NUL, and what comes to it: a patch, results, or a path. */
#include <jansson.h>

#include "common/core/json_exact.h"
#include "common/core/payload_merge.h"
#include "common/core/payload_value.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX (1U << 20)

static void check_json(const struct buf *out)
{
    json_t *again = json_exact_load((struct span){out->bytes, out->len});

    MUST_HOLD(again);
    json_decref(again);
}

/* Read and written is the same when it is read and written again. */
static void check_dump(const json_t *root)
{
    struct buf first, second;

    buf_init(&first, OUT_MAX);
    buf_init(&second, OUT_MAX);
    MUST_HOLD(json_exact_dump(root, &first) == 0);
    json_t *again = json_exact_load((struct span){first.bytes, first.len});

    MUST_HOLD(again);
    MUST_HOLD(json_exact_dump(again, &second) == 0);
    MUST_HOLD(
        span_equal((struct span){first.bytes, first.len}, (struct span){second.bytes, second.len}));
    json_decref(again);
    buf_done(&first);
    buf_done(&second);
}

static void check_patch(struct span payload, struct span patch)
{
    json_t *target = json_exact_load(payload);
    json_t *change = json_exact_load(patch);
    struct buf out;

    if (target) {
        check_dump(target);
    }
    if (target && change) {
        json_t *patched = payload_patched(target, change);

        buf_init(&out, OUT_MAX);
        MUST_HOLD(patched);
        MUST_HOLD(json_exact_dump(patched, &out) == 0);
        check_json(&out);
        buf_done(&out);
        json_decref(patched);
    }
    json_decref(target);
    json_decref(change);
}

static void check_fills(struct span payload, struct span fills)
{
    struct span filled = {0};
    struct buf out;

    buf_init(&out, OUT_MAX);
    MUST_HOLD(payload_filled(payload, fills, &out, &filled) == 0);
    if (filled.ptr != payload.ptr) {
        MUST_HOLD(filled.ptr == out.bytes);
        check_json(&out);
    }
    buf_done(&out);
    buf_init(&out, OUT_MAX);
    if (payload_result(payload, &out) == 0) { /* a line of its own, whatever stood in it */
        MUST_HOLD(!memchr(out.bytes, '\n', out.len) ||
                  memchr(out.bytes, '\n', out.len) == out.bytes + out.len - 1);
    }
    buf_done(&out);
}

static void check_path(struct span payload, struct span path)
{
    json_t *root =
        json_loadb(payload.ptr, payload.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    char room[PAYLOAD_VALUE_ROOM];
    struct span text;

    if (payload_value_text(payload_value(root, path), room, &text) == 0) {
        MUST_HOLD(text.len == 0 || text.ptr);
    }
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *nul = len > 0 ? memchr(bytes, '\0', len) : NULL;
    const struct span payload = {(const char *)bytes, nul ? (size_t)(nul - bytes) : len};
    const struct span other = {nul ? (const char *)nul + 1 : "", nul ? len - payload.len - 1 : 0};

    check_patch(payload, other);
    check_fills(payload, other);
    check_path(payload, other);
    return 0;
}
