/* Who may take how many of the free places. Pure. Contract §3, Claim: no workspace starves another.
 *
 * Dynamic threshold: a workspace takes a new place only while it holds no more than are free. So
 * one alone gets at most half of all, two a third each, and there is always room for one more
 * (Choudhury and Hahne, 1998). */
#ifndef WORKER_QUOTA_H
#define WORKER_QUOTA_H

#include <stdint.h>

/* How many more places a workspace that holds `own` may take while `free` are free. At least one of
 * a pair of places is always given to one that holds none. */
uint32_t quota_for(uint32_t own, uint32_t free);

#endif
