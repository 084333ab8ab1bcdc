/* Templates and lanes. The first line of an input is the template, the rest the value of each of
 * its places; places that begin with `no` have none. */
#include "common/core/keys.h"
#include "common/core/template.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX 65536

static int lookup(void *arg, struct span place, struct span *ret)
{
    MUST_HOLD(place.len > 0 && memchr(place.ptr, '}', place.len) == NULL);
    if (place.len >= 2 && memcmp(place.ptr, "no", 2) == 0) {
        return -1;
    }
    *ret = *(const struct span *)arg;
    return 0;
}

static void check_expand(const char *text, enum template_escape escape, struct span value)
{
    struct span place;
    struct buf out;

    buf_init(&out, OUT_MAX);
    if (template_expand(text, escape, lookup, &value, &out, &place) == 0) {
        if (!strchr(text, '{')) {
            MUST_HOLD(span_equal(span_of(text), (struct span){out.bytes, out.len}));
        }
        /* A value adds nothing to a URL that could end one of its parts. */
        for (size_t i = 0; escape == TEMPLATE_PERCENT && i < out.len; i++) {
            MUST_HOLD(!memchr("/?#&\"\r\n ", out.bytes[i], 8) || strchr(text, out.bytes[i]));
        }
    }
    buf_done(&out);
}

static void check_lane(const char *text, struct span value)
{
    struct span place;
    struct buf out;

    buf_init(&out, OUT_MAX);
    if (template_lane(text, lookup, &value, &out, &place) == 0) {
        MUST_HOLD(session_name_is_valid(out.bytes, out.len));
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
    const size_t text_len = end ? (size_t)(end - bytes) : len;
    struct span value = {"", 0};

    if (end) {
        value = (struct span){(const char *)end + 1, len - text_len - 1};
    }
    char *text = fuzz_string(bytes, text_len);

    check_expand(text, TEMPLATE_PERCENT, value);
    check_expand(text, TEMPLATE_RAW, value);
    check_lane(text, value);
    free(text);
    return 0;
}
