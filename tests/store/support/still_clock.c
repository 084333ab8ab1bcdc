/* The clock is a number in a mapped file; still_clock_shim.c reads it within the server. */
#include "tests/store/support/still_clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct still_clock {
    char path[48];
    void *page;
    _Atomic int64_t *now_us; /* in it */
    char variable[96], preload[512];
    const char *environment[3];
};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

struct still_clock *still_clock_create(int64_t now_ms)
{
    struct still_clock *clock = calloc(1, sizeof(*clock));

    if (!clock) {
        die("still clock");
    }
    snprintf(clock->path, sizeof(clock->path), "/tmp/outboxd-test-clock-XXXXXX");
    const int fd = mkstemp(clock->path);

    if (fd < 0 || ftruncate(fd, sizeof(*clock->now_us)) < 0) {
        die("still clock: its file");
    }
    clock->page = mmap(NULL, sizeof(*clock->now_us), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (clock->page == MAP_FAILED) {
        die("still clock: mmap");
    }
    close(fd);
    clock->now_us = clock->page;
    snprintf(clock->variable, sizeof(clock->variable), STILL_CLOCK_VARIABLE "=%s", clock->path);
    snprintf(clock->preload, sizeof(clock->preload), "LD_PRELOAD=%s", STILL_CLOCK_SHIM);
    clock->environment[0] = clock->variable;
    clock->environment[1] = clock->preload;
    still_clock_set_ms(clock, now_ms);
    return clock;
}

void still_clock_destroy(struct still_clock **clock)
{
    if (!*clock) {
        return;
    }
    munmap((*clock)->page, sizeof(*(*clock)->now_us));
    unlink((*clock)->path);
    free(*clock);
    *clock = NULL;
}

const char *const *still_clock_environment(const struct still_clock *clock)
{
    return clock->environment;
}

int64_t still_clock_ms(const struct still_clock *clock)
{
    return atomic_load(clock->now_us) / 1000;
}

void still_clock_set_ms(struct still_clock *clock, int64_t now_ms)
{
    atomic_store(clock->now_us, now_ms * 1000);
}
