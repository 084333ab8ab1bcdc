/* Whether a certificate, its key and the certificates of who signs clients' are such that a TLS
 * listener can use them. Pure but for GnuTLS: no file is read, the time is given. Contract §11. */
#ifndef COMMON_ACCESS_TLS_CHECK_H
#define COMMON_ACCESS_TLS_CHECK_H

#include <stdint.h>

#include "common/core/span.h"

struct buf;

/* A file's name for messages, and what stands in it (PEM). */
struct tls_text {
    const char *setting, *file;
    struct span pem; /* ptr NULL: not given */
};

struct tls_texts {
    struct tls_text certificate, key, client_ca;
};

/* Appends a line "SETTING: FILE: …: what to do" to `mistakes` for all that can't be used, and to
 * `warnings` for what soon can't. A certificate that is no longer, or not yet, valid at `now_s`
 * (Unix time) is appended to `expired`, which may be the same as either. */
void tls_check(const struct tls_texts *texts, int64_t now_s, struct buf *mistakes,
               struct buf *expired, struct buf *warnings);

#endif
