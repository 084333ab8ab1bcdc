/* A store's URL taken apart. Private to common/store; pure. Contract §13. */
#ifndef COMMON_STORE_STORE_URL_H
#define COMMON_STORE_STORE_URL_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_TLS_IS_MISSING                                                                       \
    "this build has no TLS to the store (its hiredis has none): use valkey:// to a stunnel on "    \
    "this "                                                                                        \
    "machine that speaks TLS to the store"

struct store_url {
    char *path; /* of the Unix socket; NULL: TCP */
    char *host, *port;
    char *user, *password; /* NULL: none given */
    uint32_t db;
    bool is_tls;
    char *ca, *certificate, *key; /* files for TLS; NULL: none given */
};

/* 0 and *ret filled (free with store_url_done); -EINVAL and a reason for people (static string), or
 * -ENOMEM. */
int store_url_parse(const char *text, struct store_url *ret, const char **ret_reason);
void store_url_done(struct store_url *url); /* wipes the password */

#endif
