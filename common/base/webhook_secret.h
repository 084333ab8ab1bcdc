/* Secrets that sign requests: "whsec_" and base64 of 24 to 64 bytes (Standard Webhooks). */
#ifndef COMMON_BASE_WEBHOOK_SECRET_H
#define COMMON_BASE_WEBHOOK_SECRET_H

#include <stddef.h>

#define WEBHOOK_SECRETS_MAX 8 /* of one target: more than a rotation needs */
#define WEBHOOK_KEY_MAX     64
#define WEBHOOK_SECRET_FORM "whsec_ and base64 of 24 to 64 bytes"

struct webhook_key {
    unsigned char bytes[WEBHOOK_KEY_MAX];
    size_t len;
};

/* 0, or -EINVAL: it is none. Wipe it after use. */
int webhook_secret_read(const char *text, struct webhook_key *ret);
void webhook_key_wipe(struct webhook_key *key);

#endif
