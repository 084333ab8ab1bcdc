/* Last-Event-ID: what is read is what would have been written, bounded, and nothing else is read.
 */
#include "api/event_position.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct span text = {(const char *)bytes, len};
    struct stream_id all[PARTITION_COUNT], one;
    char again[EVENT_POSITION_TEXT_MAX];

    if (event_position_read_all(text, all) == 0) {
        MUST_HOLD(event_position_write_all(all, again) == len);
        MUST_HOLD(memcmp(again, text.ptr, len) == 0);
    }
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        if (event_position_read(text, p, &one) < 0) {
            continue;
        }
        MUST_HOLD(one.ms <= EVENT_POSITION_MS_MAX);
        if (text.ptr[0] == 'p') {
            MUST_HOLD(event_position_write(p, one, again) == len);
            MUST_HOLD(memcmp(again, text.ptr, len) == 0);
        } else {
            MUST_HOLD(stream_id_compare(one, all[p]) == 0);
        }
    }
    return 0;
}
