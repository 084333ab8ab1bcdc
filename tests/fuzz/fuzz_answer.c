/* What a target sends: problem documents, Retry-After, statuses. The first byte chooses the status.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/backoff.h"
#include "tests/fuzz/fuzz.h"
#include "worker/answer.h"
#include "worker/problem_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct span body = {(const char *)bytes, len};
    struct problem_body problem;

    problem_body_read("application/problem+json", body, &problem);
    if (strlen(problem.code) > PROBLEM_CODE_MAX || strlen(problem.detail) > PROBLEM_DETAIL_MAX) {
        abort();
    }
    const struct answer answer = {
        .is_started = true,
        .status = len > 0 ? 100 + bytes[0] * 2 : 0,
        .problem_code = span_of(problem.code),
    };

    (void)answer_read(&answer, true);
    const int64_t wait = backoff_retry_after((const char *)bytes, len, 1796000000000, 3600000);

    if (wait == 0 || wait > 3600000 || wait < -1) {
        abort();
    }
    return 0;
}
