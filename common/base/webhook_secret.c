#include "common/base/webhook_secret.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define PREFIX  "whsec_"
#define KEY_MIN 24

int webhook_secret_read(const char *text, struct webhook_key *ret)
{
    struct webhook_key key = {.len = 0};

    if (strncmp(text, PREFIX, strlen(PREFIX)) != 0) {
        return -EINVAL;
    }
    text += strlen(PREFIX);
    const int err = sodium_base642bin(key.bytes, sizeof(key.bytes), text, strlen(text), NULL,
                                      &key.len, NULL, sodium_base64_VARIANT_ORIGINAL);
    const int is_key = err == 0 && key.len >= KEY_MIN;

    if (is_key) {
        *ret = key;
    }
    webhook_key_wipe(&key);
    return is_key ? 0 : -EINVAL;
}

void webhook_key_wipe(struct webhook_key *key)
{
    sodium_memzero(key, sizeof(*key));
}
