/* Delays between attempts and verifications, and what a Retry-After header is worth. Pure. Contract
 * §3, §4. */
#ifndef COMMON_CORE_BACKOFF_H
#define COMMON_CORE_BACKOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The delay before try number `tries_made` + 1: base * 2^(tries_made - 1), at most `max_ms`; with
 * full jitter uniformly in [0, that] from `random`. tries_made 0 is treated as 1. Never overflows.
 */
int64_t backoff_delay_ms(uint32_t tries_made, int64_t base_ms, int64_t max_ms, bool full_jitter,
                         uint32_t random);

/* A floor given by the target plus jitter: floor_ms + uniform [0, backoff step], never less than
 * floor_ms. */
int64_t backoff_after_floor_ms(int64_t floor_ms, uint32_t tries_made, int64_t base_ms,
                               int64_t max_ms, bool full_jitter, uint32_t random);

/* Reads a Retry-After value (RFC 9110 §10.2.3: delta-seconds or any of the three HTTP date forms).
 *   wall_now_ms  Unix time, for dates.   max_ms  clamp (max_retry_after)
 * Returns milliseconds from now in (0, max_ms], or -1 for what falls back to the backoff: negative,
 * empty, past, zero, fractional, absurd (overflowing), garbage. */
int64_t backoff_retry_after(const char *value, size_t len, int64_t wall_now_ms, int64_t max_ms);

#endif
