/* Names, keys, tokens, units, templates, error replies: round trips hold, nothing crashes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/ids.h"
#include "common/core/keys.h"
#include "common/core/template.h"
#include "common/core/units.h"
#include "common/store/store_conn.h"
#include "tests/fuzz/fuzz.h"

static int lookup(void *arg, struct span place, struct span *ret)
{
    (void)place;
    *ret = *(const struct span *)arg;
    return 0;
}

static void check_percent(struct span input)
{
    char encoded[3 * 512 + 1];
    char decoded[512 + 1];

    if (input.len > 512) {
        return;
    }
    const int64_t len = percent_encode(input.ptr, input.len, encoded, sizeof(encoded));

    if (len < 0 ||
        percent_decode(encoded, (size_t)len, decoded, sizeof(decoded)) != (int64_t)input.len ||
        memcmp(decoded, input.ptr, input.len) != 0) {
        abort();
    }
    (void)percent_decode(input.ptr, input.len, decoded, sizeof(decoded));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct span input = {(const char *)bytes, len};
    char text[600];
    struct token_parts token;
    struct span place;
    struct buf out;
    int64_t duration;
    uint64_t size;
    const char *reason;

    check_percent(input);
    (void)store_result_from_error(input.ptr, input.len);
    (void)entry_id_is_valid(input.ptr, input.len);
    (void)lock_token_parse(input.ptr, input.len, &token);
    if (len >= sizeof(text)) {
        return 0;
    }
    memcpy(text, bytes, len);
    text[len] = '\0';
    (void)units_parse_duration(text, &duration);
    (void)units_parse_size(text, &size);
    (void)store_url_check(text, &reason);
    buf_init(&out, 4096);
    (void)template_lane(text, lookup, &input, &out, &place);
    buf_done(&out);
    buf_init(&out, 4096);
    (void)template_expand(text, TEMPLATE_PERCENT, lookup, &input, &out, &place);
    buf_done(&out);
    return 0;
}
