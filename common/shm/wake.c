/* Eventfds to wake a process by its slot. Nothing here blocks and nothing here decides: a lost or a
 * needless signal costs latency or a turn of the loop. */
#include "common/shm/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/inherit.h"

int wake_create(void)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

void wake_signal(int fd)
{
    const uint64_t one = 1;
    ssize_t n;

    if (fd < 0) {
        return;
    }
    do {
        n = write(fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    /* EAGAIN: 2^64 - 2 signals wait already; any other error means that nobody is there. */
}

void wake_clear(int fd)
{
    uint64_t count;
    ssize_t n;

    if (fd < 0) {
        return;
    }
    do {
        n = read(fd, &count, sizeof(count));
    } while (n < 0 && errno == EINTR);
    /* EAGAIN: nobody had signalled. */
}

void wake_set_init(struct wake_set *set)
{
    for (uint32_t i = 0; i < SHM_SLOT_MAX; i++) {
        set->fds[i] = -1;
    }
}

int wake_set_create(struct wake_set *set, uint32_t slot_count)
{
    wake_set_init(set);
    for (uint32_t i = 0; i < slot_count && i < SHM_SLOT_MAX; i++) {
        const int fd = wake_create();
        if (fd < 0) {
            wake_set_done(set);
            return fd;
        }
        set->fds[i] = fd;
    }
    return 0;
}

void wake_set_inherit(struct wake_set *set, uint32_t slot_count)
{
    wake_set_init(set);
    for (uint32_t i = 0; i < slot_count && i < SHM_SLOT_MAX; i++) {
        const int fd = INHERIT_EVENTFD_FIRST + (int)i;
        if (fcntl(fd, F_GETFD) >= 0) {
            set->fds[i] = fd;
        }
    }
}

void wake_set_done(struct wake_set *set)
{
    for (uint32_t i = 0; i < SHM_SLOT_MAX; i++) {
        if (set->fds[i] >= 0) {
            close(set->fds[i]);
            set->fds[i] = -1;
        }
    }
}
