/* TLS to the store: what a connection shows and whom it believes. Private to common/store. Only
 * where hiredis has it (1.0; store_tls_is_built says whether). Contract §11. */
#ifndef COMMON_STORE_STORE_TLS_H
#define COMMON_STORE_STORE_TLS_H

#include <stdbool.h>

struct redisAsyncContext;
struct store_tls;
struct store_url;

bool store_tls_is_built(void);
/* Reads the files that the URL names. 0 and *ret for the caller to destroy; -EINVAL and a reason
 * for people (static, or of the library), -ENOMEM, -ENOTSUP. */
int store_tls_create(const struct store_url *url, struct store_tls **ret, const char **ret_reason);
void store_tls_destroy(struct store_tls **tls);
/* From now on what goes over a connected socket is TLS 1.2 or newer; whoever is at the other end
 * has to prove that it is `host` (a name or an address). 0 or -EPROTO. */
int store_tls_start(struct store_tls *tls, struct redisAsyncContext *ac, const char *host);
/* Whether the handshake of this connection failed because the server could not prove who it is. */
bool store_tls_was_distrusted(const struct store_tls *tls);

#endif
