/* A target's Retry-After: within its bounds on every clock. */
#include "common/core/backoff.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const int64_t clocks[] = {-1, 0, 1796000000000, 4102444800000};
    static const int64_t limits[] = {0, 1, 3600000, INT64_MAX};

    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
            const int64_t wait =
                backoff_retry_after((const char *)bytes, len, clocks[i], limits[k]);

            MUST_HOLD(wait == -1 || (wait > 0 && wait <= limits[k]));
        }
    }
    return 0;
}
