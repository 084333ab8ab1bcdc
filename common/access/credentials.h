/* What the API needs to know who calls, and to speak TLS: the contents of the files that the
 * configuration names. The supervisor reads and checks them; the API is handed them in a descriptor
 * of its own, so that workers never hold them, and so that an API that starts again has what was
 * checked, not a file that may have changed. */
#ifndef COMMON_ACCESS_CREDENTIALS_H
#define COMMON_ACCESS_CREDENTIALS_H

#include "common/core/span.h"

#define CREDENTIALS_TEXT_MAX (32U << 20)

/* Owned texts; ptr NULL: not configured. */
struct credentials {
    char *tokens;      /* the token file; NULL: no token is asked for */
    char *certificate; /* PEM, the server's own first; NULL: no TLS */
    char *key;         /* PEM */
    char *client_ca;   /* PEM; NULL: clients need no certificate */
};

/* Wipes and frees what it holds; it holds nothing then. */
void credentials_done(struct credentials *credentials);
/* A JSON object for the descriptor; the caller wipes and frees it. NULL: out of memory. */
char *credentials_print(const struct credentials *credentials);
/* 0, -EINVAL (not what credentials_print writes) or -ENOMEM. */
int credentials_parse(struct span text, struct credentials *ret);
/* Reads a descriptor from its start, and closes nothing. 0, -EINVAL, -errno. */
int credentials_read(int fd, struct credentials *ret);

#endif
