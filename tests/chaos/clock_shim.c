/* The wall clock of a process that it is preloaded into: the real one plus what stands in the file
 * that OUTBOXD_CHAOS_CLOCK names (8 bytes, nanoseconds). Whoever writes there steps the clock of
 * all that share the file. Other clocks are left alone. Without the file: the real time. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static const _Atomic int64_t *offset_ns;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("OUTBOXD_CHAOS_CLOCK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0) {
        return;
    }
    void *mapped = mmap(NULL, sizeof(*offset_ns), PROT_READ, MAP_SHARED, fd, 0);

    close(fd);
    if (mapped != MAP_FAILED) {
        offset_ns = mapped;
    }
}

/* By the system call: a library's own function may be one that is replaced here. */
static int read_clock(clockid_t id, struct timespec *ret)
{
    const int result = (int)syscall(SYS_clock_gettime, id, ret);

    if (result != 0 || !offset_ns || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) {
        return result;
    }
    const int64_t stepped_ns = (int64_t)ret->tv_sec * NS_PER_S + ret->tv_nsec + *offset_ns;

    ret->tv_sec = stepped_ns / NS_PER_S;
    ret->tv_nsec = stepped_ns % NS_PER_S;
    return 0;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    return read_clock(id, ret);
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)read_clock(CLOCK_REALTIME, &now); /* can't fail: the clock exists, the memory is ours */
    ret->tv_sec = now.tv_sec;
    ret->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;

    (void)read_clock(CLOCK_REALTIME, &now);
    if (ret) {
        *ret = now.tv_sec;
    }
    return now.tv_sec;
}
