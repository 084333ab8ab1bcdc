/* Shows the HTTP library a reset connection as what it is to us: readable first, broken afterwards.
 * See epoll_filter.c. */
#ifndef API_EPOLL_FILTER_H
#define API_EPOLL_FILTER_H

/* Events of this epoll descriptor are filtered from now on / no longer. At most 16 at a time: 0 or
 * -ENOSPC. */
int epoll_filter_add(int epoll_fd);
void epoll_filter_remove(int epoll_fd);

#endif
