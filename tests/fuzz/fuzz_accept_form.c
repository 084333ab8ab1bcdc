/* A stranger's accept body: never a crash. What is taken lies within what was sent, and comes back
 * from the store as it went in. An input is the body; after a NUL may follow an Idempotency-Key. */
#include "api/accept_form.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 4096

static void check_raw(struct span raw, struct span body)
{
    MUST_HOLD(raw.len <= TEXT_MAX);
    if (raw.len > 0) {
        MUST_HOLD(raw.ptr >= body.ptr && raw.ptr + raw.len <= body.ptr + body.len);
    }
}

static void check_stored(const struct entry_body *body)
{
    struct entry_body again;
    struct buf out;

    buf_init(&out, 1U << 20);
    MUST_HOLD(entry_body_encode(body, &out) == 0);
    MUST_HOLD(entry_body_decode((struct span){out.bytes, out.len}, &again) == 0);
    MUST_HOLD(span_equal(body->client_message_id, again.client_message_id));
    MUST_HOLD(span_equal(body->user_id, again.user_id));
    MUST_HOLD(span_equal(body->kind, again.kind));
    MUST_HOLD(body->has_text == again.has_text && span_equal(body->text, again.text));
    MUST_HOLD(span_equal(body->model, again.model));
    MUST_HOLD(span_equal(body->payload, again.payload));
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *nul = len > 0 ? memchr(bytes, '\0', len) : NULL;
    struct accept_source source = {.body = {(const char *)bytes, len}, .max_text_bytes = TEXT_MAX};
    struct accept_form form;

    if (nul) {
        source.idempotency_key =
            (struct span){nul + 1, (size_t)((const char *)bytes + len - nul - 1)};
        source.body.len = (size_t)(nul - (const char *)bytes);
    }
    if (accept_form_read(&source, &form) == PROBLEM_NONE) {
        MUST_HOLD(strlen(form.digest) == ACCEPT_DIGEST_LEN);
        MUST_HOLD(form.body.has_text || form.body.payload.len > 0);
        check_raw(form.body.model, source.body);
        check_raw(form.body.payload, source.body);
        check_stored(&form.body);
    }
    accept_form_done(&form);
    return 0;
}
