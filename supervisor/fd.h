/* Handing on a descriptor that an AUTO_CLOSE local holds. */
#ifndef SUPERVISOR_FD_H
#define SUPERVISOR_FD_H

/* Returns it; the local is empty then. */
static inline int fd_take(int *fd)
{
    const int taken = *fd;

    *fd = -1;
    return taken;
}

#endif
