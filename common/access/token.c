/* What is kept of a token is its plain SHA-256. Slow hashes with a salt (argon2, bcrypt) are for
 * passwords, which people choose and others guess: they make each guess expensive. A token of ours
 * is 256 random bits. Nobody can try them through, however fast one try is, and no two are alike,
 * so there is nothing that a salt would tell apart; a slow hash would only let strangers make the
 * API work for each wrong token. SHA-256 so that a line can be made or checked without us: printf
 * %s TOKEN | sha256sum. */
#include "common/access/token.h"

#include <sodium.h>
#include <string.h>

_Static_assert(TOKEN_LEN == sizeof(TOKEN_PREFIX) - 1 + 43, "32 bytes in base64 without padding");
_Static_assert(TOKEN_HASH_BYTES == crypto_hash_sha256_BYTES, "a whole SHA-256");

void token_draw(char ret[TOKEN_LEN + 1])
{
    unsigned char bytes[32];
    const size_t prefix = sizeof(TOKEN_PREFIX) - 1;

    randombytes_buf(bytes, sizeof(bytes));
    memcpy(ret, TOKEN_PREFIX, prefix);
    (void)sodium_bin2base64(
        ret + prefix, TOKEN_LEN + 1 - prefix, bytes, sizeof(bytes),
        sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* aborts if it did not fit */
    sodium_memzero(bytes, sizeof(bytes));
}

bool token_is_well_formed(struct span token)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/";
    size_t len = token.len;

    while (len > 0 && token.ptr[len - 1] == '=') {
        len--;
    }
    if (len == 0 || token.len > TOKEN_LEN_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!memchr(allowed, token.ptr[i], sizeof(allowed) - 1)) {
            return false;
        }
    }
    return true;
}

void token_hash(struct span token, unsigned char ret[TOKEN_HASH_BYTES])
{
    (void)crypto_hash_sha256(ret, (const unsigned char *)token.ptr, token.len); /* can't fail */
}
