#include "common/core/target_url.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Blanks and control characters: such an URL would end in the middle of a request line. */
static bool has_blank(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

const char *target_url_refusal(const char *url)
{
    const char *host = strstr(url, "://");

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return "does not begin with http:// or https://";
    }
    host += 3;
    const size_t len = strcspn(host, "/?#");

    if (len == 0 || host[0] == ':' || has_blank(url)) {
        return "names no host, or holds a space";
    }
    if (memchr(host, '@', len)) {
        return "holds credentials: give username and password apart";
    }
    if (strlen(url) > TARGET_URL_MAX) {
        return "is longer than 2048 characters";
    }
    return strpbrk(host, "?#") ? "is a base URL: no ? and no #" : NULL;
}
