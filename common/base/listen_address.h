/* One address of the setting `listen`: ADDRESS:PORT, [V6]:PORT or unix:PATH. Pure; opens nothing.
 * Contract §13. */
#ifndef COMMON_BASE_LISTEN_ADDRESS_H
#define COMMON_BASE_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Connections that may wait to be accepted, where the system allows as many (net.core.somaxconn).
 */
#define LISTEN_BACKLOG 4096

struct listen_address {
    struct sockaddr_storage address; /* AF_INET, AF_INET6 or AF_UNIX */
    socklen_t length;
    bool is_local; /* loopback or a Unix socket: nobody outside this machine gets here */
};

/* Returns 0 and fills *ret, or -EINVAL and says why in *ret_reason (static string). */
int listen_address_parse(const char *text, struct listen_address *ret, const char **ret_reason);
/* The same from an open socket's own address. 0 or -errno (-EAFNOSUPPORT: of another family). */
int listen_address_of_socket(int fd, struct listen_address *ret);

struct listen_address_text {
    char text[128];
};
/* As the setting spells it. */
struct listen_address_text listen_address_show(const struct listen_address *address);

#endif
