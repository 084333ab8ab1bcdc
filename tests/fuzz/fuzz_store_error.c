/* A store's error reply: one of the results, and never success. */
#include "common/store/store_conn.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const enum store_result result = store_result_from_error((const char *)bytes, len);

    MUST_HOLD((unsigned)result < STORE_RESULT_COUNT && result != STORE_OK);
    MUST_HOLD(store_result_name(result) && store_result_help(result));
    return 0;
}
