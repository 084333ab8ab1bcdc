/* A path as a URL. */
#include "common/base/embedded_url.h"

#include <errno.h>
#include <stdio.h>

/* `%` and `?` mean something in a URL; anything else a path may hold stands for itself. */
static int append_path(char *url, size_t *used, const char *path)
{
    for (; *path; path++) {
        const size_t room = EMBEDDED_URL_MAX - *used;
        const int len = snprintf(url + *used, room, *path == '%' || *path == '?' ? "%%%02X" : "%c",
                                 (unsigned char)*path);
        if (len < 0 || (size_t)len >= room) {
            return -ENAMETOOLONG;
        }
        *used += (size_t)len;
    }
    return 0;
}

int embedded_url_make(const char *state_dir, char url[EMBEDDED_URL_MAX])
{
    size_t used = (size_t)snprintf(url, EMBEDDED_URL_MAX, "unix://"); /* fits */
    const int err = append_path(url, &used, state_dir);

    return err < 0 ? err : append_path(url, &used, EMBEDDED_SOCKET_NAME);
}
