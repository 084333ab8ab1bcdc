/* Durations and sizes: what is read, written and read again is the same number. */
#include "common/core/units.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = fuzz_string(bytes, len);
    char again[32];
    int64_t ms, ms_again;
    uint64_t size, size_again;

    if (units_parse_duration(text, &ms) == 0) {
        MUST_HOLD(ms >= 0);
        units_format_duration(ms, again);
        MUST_HOLD(units_parse_duration(again, &ms_again) == 0 && ms_again == ms);
    }
    if (units_parse_size(text, &size) == 0) {
        units_format_size(size, again);
        MUST_HOLD(units_parse_size(again, &size_again) == 0 && size_again == size);
    }
    free(text);
    return 0;
}
