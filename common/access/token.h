/* A token: what a caller of the API shows, and what is kept of it. Needs sodium_init(). */
#ifndef COMMON_ACCESS_TOKEN_H
#define COMMON_ACCESS_TOKEN_H

#include <stdbool.h>

#include "common/core/span.h"

#define TOKEN_PREFIX     "obx_" /* so that scanners for leaked secrets can know one */
#define TOKEN_LEN        47     /* of those that we make */
#define TOKEN_LEN_MAX    512    /* of those that are looked at */
#define TOKEN_HASH_BYTES 32

/* Draws a new one, and a NUL. The caller wipes it. */
void token_draw(char ret[TOKEN_LEN + 1]);
/* Whether it could be one: RFC 6750's b64token, not too long. */
bool token_is_well_formed(struct span token);
void token_hash(struct span token, unsigned char ret[TOKEN_HASH_BYTES]);

#endif
