#include "common/core/target_url.h"

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

static const char *host_of(const char *url)
{
    const char *host = strstr(url, "://");

    return host ? host + 3 : url;
}

bool target_url_has_credentials(const char *url)
{
    const char *host = host_of(url);

    return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

const char *target_url_refusal(const char *url)
{
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return "does not begin with http:// or https://";
    }
    const char *host = host_of(url);
    const size_t len = strcspn(host, "/?#");

    if (len == 0 || host[0] == ':' || has_blank(url)) {
        return "names no host, or holds a space";
    }
    if (target_url_has_credentials(url)) {
        return "holds credentials: give username and password apart";
    }
    if (strlen(url) > TARGET_URL_MAX) {
        return "is longer than 2048 characters";
    }
    return strpbrk(host, "?#") ? "is a base URL: no ? and no #" : NULL;
}
