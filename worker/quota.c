/* The dynamic threshold, in closed form. */
#include "worker/quota.h"

uint32_t quota_for(uint32_t own, uint32_t free)
{
    if (free == 0 || own > free) {
        return 0;
    }
    /* A place taken adds one to `own` and takes one from `free`: the k-th is allowed while own + k
     * - 1 <= free - k + 1. */
    const uint32_t places = (free - own) / 2 + 1;

    return places < free ? places : free;
}
