/* A store's URL taken apart. Private to common/store; pure. Contract §13. */
#ifndef COMMON_STORE_STORE_URL_H
#define COMMON_STORE_STORE_URL_H

#include <stdint.h>

struct store_url {
    char *path; /* of the Unix socket; NULL: TCP */
    char *host, *port;
    char *user, *password; /* NULL: none given */
    uint32_t db;
};

/* 0 and *ret filled (free with store_url_done); -EINVAL and a reason for people (static string), or
 * -ENOMEM. */
int store_url_parse(const char *text, struct store_url *ret, const char **ret_reason);
void store_url_done(struct store_url *url); /* wipes the password */

#endif
