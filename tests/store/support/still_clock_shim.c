/* Loaded into a server (LD_PRELOAD): its wall clock is the number in a file that still_clock.c
 * writes. All other clocks run on. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/store/support/still_clock.h"

static const _Atomic int64_t *now_us;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv(STILL_CLOCK_VARIABLE);
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*now_us), PROT_READ, MAP_SHARED, fd, 0);

    if (page == MAP_FAILED) {
        _exit(126); /* with the real clock the test would mean something else */
    }
    close(fd);
    now_us = page;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    const int64_t us = atomic_load(now_us);

    (void)zone;
    *now = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    const int64_t us = atomic_load(now_us);

    *now = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}

time_t time(time_t *now)
{
    const time_t seconds = atomic_load(now_us) / 1000000;

    if (now) {
        *now = seconds;
    }
    return seconds;
}
