/* OpenSSL's objects are made here and handed to hiredis, rather than by hiredis: its own do not
 * look at the server's name, so that every certificate of the same authority would do. */
#include "common/store/store_tls.h"

#include <errno.h>
#include <stdlib.h>

#include "common/store/store_url.h"

#ifdef HAVE_STORE_TLS

#include <arpa/inet.h>
#include <hiredis/async.h>
#include <hiredis/hiredis_ssl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

struct store_tls {
    SSL_CTX *context;
    bool was_distrusted; /* the last handshake ended so */
};

bool store_tls_is_built(void)
{
    return true;
}

static int refuse(const char **ret_reason, const char *otherwise)
{
    const unsigned long err = ERR_peek_last_error();
    const char *reason = err ? ERR_reason_error_string(err) : NULL;

    *ret_reason = reason ? reason : otherwise;
    ERR_clear_error();
    return -EINVAL;
}

static int load(SSL_CTX *context, const struct store_url *url, const char **ret_reason)
{
    if (url->ca ? SSL_CTX_load_verify_locations(context, url->ca, NULL) != 1
                : SSL_CTX_set_default_verify_paths(context) != 1) {
        return refuse(ret_reason, "the authorities' certificates (?ca=) cannot be read");
    }
    if (url->certificate && SSL_CTX_use_certificate_chain_file(context, url->certificate) != 1) {
        return refuse(ret_reason, "the certificate (?certificate=) cannot be read");
    }
    if (url->key && (SSL_CTX_use_PrivateKey_file(context, url->key, SSL_FILETYPE_PEM) != 1 ||
                     SSL_CTX_check_private_key(context) != 1)) {
        return refuse(ret_reason, "the key (?key=) cannot be read, or is not the certificate's");
    }
    return 0;
}

static int on_verified(int is_good, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct store_tls *tls = ssl ? SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)) : NULL;

    if (!is_good && tls) {
        tls->was_distrusted = true;
    }
    return is_good;
}

int store_tls_create(const struct store_url *url, struct store_tls **ret, const char **ret_reason)
{
    struct store_tls *tls = calloc(1, sizeof(*tls));

    *ret_reason = "out of memory";
    if (tls) {
        tls->context = SSL_CTX_new(TLS_client_method());
    }
    int err = tls && tls->context ? 0 : -ENOMEM;
    if (err == 0) {
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
        SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, on_verified);
        SSL_CTX_set_app_data(tls->context, tls);
        err = load(tls->context, url, ret_reason);
    }
    if (err < 0) {
        store_tls_destroy(&tls);
        return err;
    }
    *ret = tls;
    return 0;
}

void store_tls_destroy(struct store_tls **tls)
{
    if (*tls) {
        SSL_CTX_free((*tls)->context);
        free(*tls);
        *tls = NULL;
    }
}

static bool is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool demand_host(SSL *ssl, const char *host)
{
    return is_address(host)
               ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
               : SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

int store_tls_start(struct store_tls *tls, struct redisAsyncContext *ac, const char *host)
{
    SSL *ssl = SSL_new(tls->context);

    tls->was_distrusted = false;
    if (!ssl || !demand_host(ssl, host)) {
        SSL_free(ssl);
        return -EPROTO;
    }
    if (redisInitiateSSL(&ac->c, ssl) != REDIS_OK) {
        SSL_free(ssl); /* not taken over */
        return -EPROTO;
    }
    return 0;
}

bool store_tls_was_distrusted(const struct store_tls *tls)
{
    return tls && tls->was_distrusted;
}

#else

bool store_tls_is_built(void)
{
    return false;
}

int store_tls_create(const struct store_url *url, struct store_tls **ret, const char **ret_reason)
{
    (void)url;
    (void)ret;
    *ret_reason = STORE_TLS_IS_MISSING;
    return -ENOTSUP;
}

void store_tls_destroy(struct store_tls **tls)
{
    *tls = NULL;
}

int store_tls_start(struct store_tls *tls, struct redisAsyncContext *ac, const char *host)
{
    (void)tls;
    (void)ac;
    (void)host;
    return -EPROTO;
}

bool store_tls_was_distrusted(const struct store_tls *tls)
{
    (void)tls;
    return false;
}

#endif
