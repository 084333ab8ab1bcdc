/* Where the password stands in a store URL. Text only: whether the URL is a good one is for the
 * store layer. */
#include "common/base/store_password.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/buf.h"
#include "common/core/keys.h"

#define PASSWORD_MAX 1024

struct store_password store_password_find(const char *url)
{
    const char *scheme = strstr(url, "://");
    struct store_password found = {.authority = scheme ? (size_t)(scheme - url) + 3 : 0};

    if (!scheme) {
        return found;
    }
    const char *authority = url + found.authority;
    size_t len = strcspn(authority, "/?#");
    const char *at = memrchr(authority, '@', len);
    const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;

    if (at) {
        found.user_len = (size_t)((colon ? colon : at) - authority);
        found.host = (size_t)(at - url) + 1;
    } else {
        found.host = found.authority;
    }
    if (colon) {
        found.has_password = true;
        found.password = (size_t)(colon - url) + 1;
        found.password_len = (size_t)(at - colon) - 1;
    }
    return found;
}

char *store_password_set(const char *url, const char *password)
{
    struct store_password parts = store_password_find(url);
    char encoded[PASSWORD_MAX * 3 + 1];
    struct buf out;

    if (percent_encode(password, strlen(password), encoded, sizeof(encoded)) < 0) {
        return NULL;
    }
    buf_init(&out, strlen(url) + sizeof(encoded) + 2);
    (void)buf_append(&out, url, parts.authority + parts.user_len); /* checked by buf_steal */
    (void)buf_appendf(&out, ":%s@%s", encoded, url + parts.host);
    explicit_bzero(encoded, sizeof(encoded));
    char *ret = buf_steal(&out, NULL);
    buf_done(&out);
    return ret;
}
