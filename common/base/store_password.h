/* The password within a store URL (scheme://[user[:password]@]host…): found, set, hidden. Pure. */
#ifndef COMMON_BASE_STORE_PASSWORD_H
#define COMMON_BASE_STORE_PASSWORD_H

#include <stdbool.h>
#include <stddef.h>

/* Offsets into the URL. */
struct store_password {
    size_t authority; /* behind "://"; 0: this is no URL */
    size_t user_len;  /* of the user name that stands there */
    size_t host;      /* behind "@", or = authority */
    bool has_password;
    size_t password, password_len;
};
struct store_password store_password_find(const char *url);
/* A copy of the URL with this password, percent-encoded; the caller frees it. NULL: out of memory,
 * or too long. */
char *store_password_set(const char *url, const char *password);

#endif
