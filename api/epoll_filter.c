/* Stands in front of epoll_wait, for the HTTP library's own descriptors only.
 *
 * Why: a client that sends its whole request and is gone with a reset (killed with unread bytes,
 * SO_LINGER 0) leaves a socket that is readable and in error at once. libmicrohttpd 0.9.75 looks at
 * EPOLLERR and EPOLLHUP first and throws the complete request away; measured: every such request
 * whose reset came before the first read. The bytes are there, and Linux hands them out before it
 * reports the reset, so the library only has to read first. It offers no hook for that; but it
 * calls epoll_wait through the dynamic linker, which finds this one. With an orderly end (FIN) it
 * reads by itself. When the last byte is read, recv() reports the reset and the library closes the
 * connection as ever. */
#include "api/epoll_filter.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#define FILTERED_MAX 16

static int filtered[FILTERED_MAX];
static unsigned filtered_count;

int epoll_filter_add(int epoll_fd)
{
    if (filtered_count == FILTERED_MAX) {
        return -ENOSPC;
    }
    filtered[filtered_count++] = epoll_fd;
    return 0;
}

void epoll_filter_remove(int epoll_fd)
{
    for (unsigned i = 0; i < filtered_count; i++) {
        if (filtered[i] == epoll_fd) {
            filtered[i] = filtered[--filtered_count];
            return;
        }
    }
}

static int is_filtered(int epoll_fd)
{
    for (unsigned i = 0; i < filtered_count; i++) {
        if (filtered[i] == epoll_fd) {
            return 1;
        }
    }
    return 0;
}

int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
    /* cppcheck-suppress nullPointer ; no mask of signals: epoll_wait itself */
    int count = epoll_pwait(epoll_fd, events, max, timeout, NULL);

    if (count > 0 && is_filtered(epoll_fd)) {
        for (int i = 0; i < count; i++) {
            if (events[i].events & EPOLLIN) {
                events[i].events &= ~(uint32_t)(EPOLLERR | EPOLLHUP);
            }
        }
    }
    return count;
}
