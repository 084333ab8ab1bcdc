/* What a target answers: problem documents, and what an answer means. The first two bytes are how
 * the transfer went (flags, status); the rest is the body. */
#include "common/core/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "worker/answer.h"
#include "worker/problem_body.h"

static void check_problem(const struct problem_body *problem)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

    MUST_HOLD(strlen(problem->code) <= PROBLEM_CODE_MAX);
    MUST_HOLD(strspn(problem->code, plain) == strlen(problem->code));
    MUST_HOLD(strlen(problem->detail) <= PROBLEM_DETAIL_MAX);
    MUST_HOLD(utf8_is_valid(problem->detail, strlen(problem->detail)));
    for (const char *at = problem->detail; *at != '\0'; at++) {
        MUST_HOLD((unsigned char)*at >= 0x20 && *at != 0x7f);
    }
    MUST_HOLD(strlen(problem->current) <= PROBLEM_CURRENT_MAX);
    MUST_HOLD(utf8_is_valid(problem->current, strlen(problem->current)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct problem_body problem;

    if (len < 2) {
        return 0;
    }
    problem_body_read("application/problem+json", (struct span){(const char *)bytes + 2, len - 2},
                      &problem);
    check_problem(&problem);

    const struct answer answer = {
        .is_started = (bytes[0] & 1) != 0,
        .is_complete = (bytes[0] & 2) != 0,
        .status = bytes[1] * 4 + (bytes[0] >> 4) - 8, /* also what no server may send */
        .problem_code = span_of(problem.code),
    };
    const struct answer_reading reading = answer_read(&answer, (bytes[0] & 4) != 0);

    MUST_HOLD((unsigned)reading.outcome < OUTCOME_COUNT);
    return 0;
}
