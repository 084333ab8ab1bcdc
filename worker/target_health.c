#include "worker/target_health.h"

#include "worker/transfer.h"

/* A gateway, or the server itself, says that it is not available (RFC 9110 §15.6). Any other answer
 * comes from something that is there: a 500 may be the message's own fault. */
static bool says_that_it_is_away(int status)
{
    return status == 502 || status == 503 || status == 504;
}

enum target_health target_health_of(const struct transfer_result *result, bool is_lookup)
{
    if (result->is_refused_address || result->is_too_late) {
        return TARGET_SAYS_NOTHING;
    }
    if (result->status == 0) {
        return result->is_started ? TARGET_IS_SILENT : TARGET_IS_AWAY;
    }
    if (says_that_it_is_away(result->status)) {
        return is_lookup ? TARGET_SAYS_NOTHING : TARGET_IS_AWAY;
    }
    return TARGET_IS_THERE;
}
