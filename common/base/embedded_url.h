/* Where the embedded store listens: a Unix socket in the state directory, and its URL. Pure. */
#ifndef COMMON_BASE_EMBEDDED_URL_H
#define COMMON_BASE_EMBEDDED_URL_H

#include <stddef.h>

#define EMBEDDED_SOCKET_NAME "/store.sock"
#define EMBEDDED_URL_MAX     512

/* unix:///…, with what means something in a URL percent-encoded. 0 or -ENAMETOOLONG. */
int embedded_url_make(const char *state_dir, char url[EMBEDDED_URL_MAX]);

#endif
