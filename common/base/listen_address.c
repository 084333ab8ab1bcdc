/* Reads a listening address. Numbers only: a name that resolves differently tomorrow is no place to
 * bind to. */
#include "common/base/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static int refuse(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return -EINVAL;
}

static bool parse_port(const char *text, in_port_t *ret)
{
    unsigned port = 0;

    if (!*text || *text == '0') { /* neither 0 (any port) nor leading zeros */
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        port = port * 10 + (unsigned)(*text - '0');
        if (port > UINT16_MAX) {
            return false;
        }
    }
    *ret = htons((uint16_t)port);
    return true;
}

static bool is_local(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

    switch (address->ss_family) {
    case AF_INET:
        return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    default:
        return address->ss_family == AF_UNIX;
    }
}

static void fill(struct listen_address *ret, const void *address, socklen_t length)
{
    *ret = (struct listen_address){.length = length};
    memcpy(&ret->address, address, length);
    ret->is_local = is_local(&ret->address);
}

static int parse_unix(const char *path, struct listen_address *ret, const char **ret_reason)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (path[0] != '/') {
        return refuse(ret_reason, "the path of a Unix socket must begin with /");
    }
    if (len >= sizeof(address.sun_path)) {
        return refuse(ret_reason, "the path of a Unix socket must be shorter than 108 bytes");
    }
    memcpy(address.sun_path, path, len);
    fill(ret, &address, sizeof(address));
    return 0;
}

static int set_v4(const char *host, in_port_t port, struct listen_address *ret)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port};

    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        return -EINVAL;
    }
    fill(ret, &address, sizeof(address));
    return 0;
}

static int set_v6(const char *host, in_port_t port, struct listen_address *ret)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = port};

    if (inet_pton(AF_INET6, host, &address.sin6_addr) != 1) {
        return -EINVAL;
    }
    fill(ret, &address, sizeof(address));
    return 0;
}

int listen_address_parse(const char *text, struct listen_address *ret, const char **ret_reason)
{
    char host[INET6_ADDRSTRLEN + 2]; /* with brackets */
    const char *colon = strrchr(text, ':');
    in_port_t port;

    if (strncmp(text, "unix:", 5) == 0) {
        return parse_unix(text + 5, ret, ret_reason);
    }
    if (!colon || colon == text) {
        return refuse(ret_reason, "is not ADDRESS:PORT, [V6]:PORT or unix:PATH");
    }
    if (!parse_port(colon + 1, &port)) {
        return refuse(ret_reason, "has no port from 1 to 65535 after its last colon");
    }
    size_t len = (size_t)(colon - text);
    if (len >= sizeof(host)) {
        return refuse(ret_reason, "its address is not a numeric one");
    }
    memcpy(host, text, len);
    host[len] = '\0';
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        if (set_v6(host + 1, port, ret) < 0) {
            return refuse(ret_reason, "has no IPv6 address between its brackets");
        }
        return 0;
    }
    if (set_v4(host, port, ret) < 0) {
        return refuse(ret_reason,
                      strchr(host, ':')
                          ? "an IPv6 address must stand in brackets: [::1]:7780"
                          : "its address is not a numeric one (127.0.0.1, 0.0.0.0, [::1])");
    }
    return 0;
}

int listen_address_of_socket(int fd, struct listen_address *ret)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
        return -errno;
    }
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6 &&
        address.ss_family != AF_UNIX) {
        return -EAFNOSUPPORT;
    }
    fill(ret, &address, length);
    return 0;
}

static void show_unix(const struct listen_address *address, struct listen_address_text *ret)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->address;
    const size_t offset = offsetof(struct sockaddr_un, sun_path);
    const size_t len = address->length > offset ? address->length - offset : 0;
    const bool is_abstract = len > 0 && un->sun_path[0] == '\0';

    (void)snprintf(ret->text, sizeof(ret->text), "unix:%s%.*s", is_abstract ? "@" : "",
                   (int)len - is_abstract, un->sun_path + is_abstract);
}

struct listen_address_text listen_address_show(const struct listen_address *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->address;
    struct listen_address_text shown = {.text = ""};
    char host[INET6_ADDRSTRLEN] = "";

    switch (address->address.ss_family) {
    case AF_INET:
        (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)); /* fits */
        (void)snprintf(shown.text, sizeof(shown.text), "%s:%u", host, ntohs(v4->sin_port));
        break;
    case AF_INET6:
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        (void)snprintf(shown.text, sizeof(shown.text), "[%s]:%u", host, ntohs(v6->sin6_port));
        break;
    default:
        show_unix(address, &shown);
    }
    return shown;
}
