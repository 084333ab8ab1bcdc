/* Reads a listening address. Numbers only: a name that resolves differently tomorrow is no place to
 * bind to. */
#include "common/base/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
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
    *ret = (struct listen_address){.length = sizeof(address), .is_local = true};
    memcpy(&ret->address, &address, sizeof(address));
    return 0;
}

static int set_v4(const char *host, in_port_t port, struct listen_address *ret)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port};

    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        return -EINVAL;
    }
    *ret = (struct listen_address){
        .length = sizeof(address),
        .is_local = ntohl(address.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET,
    };
    memcpy(&ret->address, &address, sizeof(address));
    return 0;
}

static int set_v6(const char *host, in_port_t port, struct listen_address *ret)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = port};

    if (inet_pton(AF_INET6, host, &address.sin6_addr) != 1) {
        return -EINVAL;
    }
    *ret = (struct listen_address){
        .length = sizeof(address),
        .is_local = IN6_IS_ADDR_LOOPBACK(&address.sin6_addr),
    };
    memcpy(&ret->address, &address, sizeof(address));
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
