/* A body read from the store: never a crash. What can be read lies within the bytes, is written to
 * the same, and written again to the same bytes. */
#include "common/store/entry.h"
#include "tests/fuzz/fuzz.h"

static void check_same(const struct entry_body *a, const struct entry_body *b)
{
    MUST_HOLD(span_equal(a->client_message_id, b->client_message_id));
    MUST_HOLD(span_equal(a->user_id, b->user_id));
    MUST_HOLD(span_equal(a->kind, b->kind));
    MUST_HOLD(a->has_text == b->has_text && span_equal(a->text, b->text));
    MUST_HOLD(span_equal(a->model, b->model));
    MUST_HOLD(span_equal(a->payload, b->payload));
    MUST_HOLD(span_equal(a->traceparent, b->traceparent));
    MUST_HOLD(a->depends_on_count == b->depends_on_count);
    for (uint32_t i = 0; i < a->depends_on_count; i++) {
        MUST_HOLD(span_equal(a->depends_on[i], b->depends_on[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct entry_body body, again;
    struct buf first, second;

    if (entry_body_decode((struct span){(const char *)bytes, len}, &body) < 0) {
        return 0;
    }
    MUST_HOLD(body.depends_on_count <= DEPENDS_ON_MAX);
    buf_init(&first, 1U << 24);
    buf_init(&second, 1U << 24);
    MUST_HOLD(entry_body_encode(&body, &first) == 0);
    MUST_HOLD(entry_body_decode((struct span){first.bytes, first.len}, &again) == 0);
    check_same(&body, &again);
    MUST_HOLD(entry_body_encode(&again, &second) == 0);
    MUST_HOLD(
        span_equal((struct span){first.bytes, first.len}, (struct span){second.bytes, second.len}));
    buf_done(&first);
    buf_done(&second);
    return 0;
}
