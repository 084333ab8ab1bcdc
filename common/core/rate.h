/* So many a second and no more: a token bucket of a tenth of a second, kept as the one time at
 * which it is full again (the generic cell rate algorithm, ITU-T I.371). Pure. */
#ifndef COMMON_CORE_RATE_H
#define COMMON_CORE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate_step {
    bool may_go;
    int64_t full_ns; /* what to keep: the time at which nothing is owed any more */
    int64_t wait_ns; /* if it may not: until it may; above 0 */
};

/* Takes one at `now_ns`, of `per_second` (above 0). `full_ns` is what was kept; 0 or any time that
 * has passed: the bucket is full. One too far away counts as an empty bucket. */
struct rate_step rate_take(int64_t full_ns, int64_t now_ns, uint32_t per_second);

#endif
