/* Ownership helpers: locals that free themselves, and the functions nobody here may call. */
#ifndef COMMON_BASE_ERR_H
#define COMMON_BASE_ERR_H

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *pointer)
{
    void **p = pointer;
    free(*p);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

/* Hands a descriptor over: the variable that would close it holds none any more. */
static inline int take_fd(int *fd)
{
    const int taken = *fd;

    *fd = -1;
    return taken;
}

#define AUTO_FREE  CLEANUP(cleanup_free)
#define AUTO_CLOSE CLEANUP(cleanup_close)

#endif
