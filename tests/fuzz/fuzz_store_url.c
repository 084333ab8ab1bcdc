/* A store's URL: refused with a reason, or taken apart into what a connection can use. */
#include <errno.h>

#include "common/store/store_url.h"
#include "tests/fuzz/fuzz.h"

static void check_parts(const struct store_url *url)
{
    MUST_HOLD(url->db <= 9999);
    if (url->path) {
        MUST_HOLD(url->path[0] == '/' && !url->host && !url->port);
        return;
    }
    MUST_HOLD(url->host && url->host[0] != '\0');
    MUST_HOLD(url->port && strspn(url->port, "0123456789") == strlen(url->port));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = fuzz_string(bytes, len);
    struct store_url url;
    const char *reason = NULL;
    const int err = store_url_parse(text, &url, &reason);

    if (err == 0) {
        check_parts(&url);
        store_url_done(&url);
    } else {
        MUST_HOLD(err == -EINVAL && reason);
    }
    free(text);
    return 0;
}
