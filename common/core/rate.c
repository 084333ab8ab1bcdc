#include "common/core/rate.h"

#define SECOND_NS INT64_C(1000000000)
#define BURST_NS  (SECOND_NS / 10)

struct rate_step rate_take(int64_t full_ns, int64_t now_ns, uint32_t per_second)
{
    const int64_t each_ns = (SECOND_NS + per_second - 1) / per_second;
    const int64_t burst_ns = each_ns < BURST_NS ? BURST_NS - each_ns : 0;
    int64_t owed_ns = full_ns > now_ns ? full_ns - now_ns : 0;

    if (owed_ns > burst_ns + each_ns) {
        owed_ns = burst_ns + each_ns;
    }
    if (owed_ns > burst_ns) {
        return (struct rate_step){.full_ns = now_ns + owed_ns, .wait_ns = owed_ns - burst_ns};
    }
    return (struct rate_step){.may_go = true, .full_ns = now_ns + owed_ns + each_ns};
}
