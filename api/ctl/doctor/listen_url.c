/* A listening address as a URL. */
#include "api/ctl/doctor/listen_url.h"

#include <stdio.h>
#include <string.h>

void listen_url(const char *address, bool is_tls, char *out, size_t cap)
{
    static const struct {
        const char *any, *loopback;
    } rows[] = {{"0.0.0.0:", "127.0.0.1:"}, {"[::]:", "[::1]:"}};
    const char *host = "", *rest = address;

    if (strncmp(address, "unix:", 5) == 0) {
        (void)snprintf(out, cap, "%s", address);
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t len = strlen(rows[i].any);

        if (strncmp(address, rows[i].any, len) == 0) {
            host = rows[i].loopback;
            rest = address + len;
        }
    }
    (void)snprintf(out, cap, "%s://%s%s", is_tls ? "https" : "http", host, rest);
}
