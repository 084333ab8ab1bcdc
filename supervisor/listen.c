/* Binds what `listen` names. SO_REUSEADDR so that a restart need not wait for old connections;
 * never SO_REUSEPORT: two processes behind one port lose what waits in the queue of the one that
 * goes. */
#include "supervisor/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/listen_address.h"
#include "supervisor/fd.h"

void listeners_init(struct listeners *listeners)
{
    listeners->count = 0;
    for (size_t i = 0; i < INHERIT_LISTEN_MAX; i++) {
        listeners->fds[i] = -1;
    }
}

/* A socket file that a killed process left is in the way of bind; one that somebody serves is not
 * ours to take. */
static int remove_stale_socket(const struct listen_address *address)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->address;
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (const struct sockaddr *)un, address->length) == 0 || errno == EAGAIN) {
        return -EADDRINUSE;
    }
    if (errno == ECONNREFUSED && unlink(un->sun_path) < 0) {
        return -errno;
    }
    return 0; /* absent, or no socket at all: bind will say so */
}

static int open_one(const struct listen_address *address)
{
    const int yes = 1;
    const int family = address->address.ss_family;

    if (family == AF_UNIX) {
        const int err = remove_stale_socket(address);
        if (err < 0) {
            return err;
        }
    }
    AUTO_CLOSE int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (family != AF_UNIX && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0) {
        return -errno;
    }
    /* Whatever net.ipv6.bindv6only says: [::] is IPv6 only, 0.0.0.0 may stand beside it in the
     * list. */
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0) {
        return -errno;
    }
    if (bind(fd, (const struct sockaddr *)&address->address, address->length) < 0 ||
        listen(fd, LISTEN_BACKLOG) < 0) {
        return -errno;
    }
    return fd_take(&fd);
}

int listeners_open(struct listeners *listeners, const struct text_list *addresses,
                   const char **ret_address, const char **ret_reason)
{
    if (listeners->count > 0) {
        return 0;
    }
    for (size_t i = 0; i < addresses->count; i++) {
        struct listen_address address;
        const char *reason = NULL;
        int fd;

        *ret_address = addresses->items[i];
        *ret_reason = NULL;
        if (i >= INHERIT_LISTEN_MAX) {
            *ret_reason = "too many addresses: 16 at most";
            return -E2BIG;
        }
        if (listeners->fds[i] >= 0) {
            continue;
        }
        fd = listen_address_parse(addresses->items[i], &address, &reason);
        if (fd < 0) {
            *ret_reason = reason;
            return fd;
        }
        fd = open_one(&address);
        if (fd < 0) {
            return fd;
        }
        listeners->fds[i] = fd;
    }
    listeners->count = addresses->count;
    return 0;
}

void listeners_close(struct listeners *listeners)
{
    for (size_t i = 0; i < INHERIT_LISTEN_MAX; i++) {
        if (listeners->fds[i] >= 0) {
            close(listeners->fds[i]);
        }
    }
    listeners_init(listeners);
}
