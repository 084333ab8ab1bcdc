#include "worker/webhook_signature.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

#include "common/base/webhook_secret.h"

#define VERSION "v1"
#define ENCODED_MAX                                                                                \
    sodium_base64_ENCODED_LEN(crypto_auth_hmacsha256_BYTES, sodium_base64_VARIANT_ORIGINAL)

static const unsigned char *bytes_of(struct span span)
{
    return (const unsigned char *)span.ptr;
}

static void sign(const struct webhook_key *key, struct span id, struct span timestamp,
                 struct span body, unsigned char ret[crypto_auth_hmacsha256_BYTES])
{
    static const struct span dot = {".", 1};
    const struct span parts[] = {id, dot, timestamp, dot, body};
    crypto_auth_hmacsha256_state state;

    crypto_auth_hmacsha256_init(&state, key->bytes, key->len);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].len > 0) {
            crypto_auth_hmacsha256_update(&state, bytes_of(parts[i]), parts[i].len);
        }
    }
    crypto_auth_hmacsha256_final(&state, ret);
    sodium_memzero(&state, sizeof(state));
}

int webhook_signature_write(const char *const *secrets, size_t count, struct span id,
                            int64_t timestamp_s, struct span body, struct buf *out)
{
    char timestamp[24];
    int err = 0;

    snprintf(timestamp, sizeof(timestamp), "%" PRId64, timestamp_s);
    for (size_t i = 0; err == 0 && i < count; i++) {
        unsigned char mac[crypto_auth_hmacsha256_BYTES];
        char encoded[ENCODED_MAX];
        struct webhook_key key;

        if (webhook_secret_read(secrets[i], &key) < 0) {
            return -EINVAL;
        }
        sign(&key, id, span_of(timestamp), body, mac);
        webhook_key_wipe(&key);
        sodium_bin2base64(encoded, sizeof(encoded), mac, sizeof(mac),
                          sodium_base64_VARIANT_ORIGINAL);
        err = buf_appendf(out, "%s" VERSION ",%s", i > 0 ? " " : "", encoded);
    }
    return err;
}
