/* A body read from the store: never a crash; what can be read is written to the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/store/entry.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct span input = {(const char *)bytes, len};
    struct entry_body body;
    struct entry_body again;
    struct buf out;

    if (entry_body_decode(input, &body) < 0) {
        return 0;
    }
    buf_init(&out, 1U << 24);
    if (entry_body_encode(&body, &out) < 0 ||
        entry_body_decode((struct span){out.bytes, out.len}, &again) < 0 ||
        !span_equal(body.kind, again.kind) || !span_equal(body.payload, again.payload) ||
        body.depends_on_count != again.depends_on_count) {
        abort();
    }
    buf_done(&out);
    return 0;
}
