/* The clocks, told apart by name. mono: CLOCK_MONOTONIC, for waits and latencies inside a process.
 * boot: CLOCK_BOOTTIME, for lock deadlines (it counts through a suspend). wall: Unix time, for
 * people and HTTP dates only. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t clock_mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static inline int64_t clock_boot_ms(void)
{
    return clock_read_ns(CLOCK_BOOTTIME) / 1000000;
}

static inline int64_t clock_wall_ms(void)
{
    return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

/* RFC 3339 with milliseconds in UTC: "2026-11-30T23:56:00.123Z". `out` holds at least 32 bytes. */
void clock_format_rfc3339(int64_t wall_ms, char *out);

#endif
