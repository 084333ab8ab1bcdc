/* Asks GnuTLS, which is what the listener will use, and says what it found in words that tell what
 * to do. Never shows a key. */
#include "common/access/tls_check.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/core/buf.h"

#define CHAIN_MAX   16
#define SOON_S      (14LL * 24 * 3600)
#define CERT_HEADER "-----BEGIN CERTIFICATE-----"

static gnutls_datum_t datum_of(struct span pem)
{
    /* GnuTLS reads only, and its lengths are 32 bits; files this large are not read. */
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)pem.ptr, (unsigned)pem.len};
}

static void tell(struct buf *out, const struct tls_text *text, const char *what, const char *mend)
{
    (void)buf_appendf(out, "%s: %s: %s: %s\n", text->setting, text->file, what, mend);
}

static bool holds(struct span pem, const char *needle)
{
    return memmem(pem.ptr, pem.len, needle, strlen(needle)) != NULL;
}

/* ---- certificates ---- */

struct chain {
    gnutls_x509_crt_t certificates[CHAIN_MAX];
    unsigned count;
};

static void free_chain(struct chain *chain)
{
    while (chain->count > 0) {
        gnutls_x509_crt_deinit(chain->certificates[--chain->count]);
    }
}

static bool read_chain(const struct tls_text *text, struct chain *chain, struct buf *mistakes)
{
    const gnutls_datum_t pem = datum_of(text->pem);

    chain->count = CHAIN_MAX;
    const int err =
        gnutls_x509_crt_list_import(chain->certificates, &chain->count, &pem, GNUTLS_X509_FMT_PEM,
                                    GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    if (err < 0 || chain->count == 0) {
        chain->count = 0; /* nothing of it is ours on failure */
        if (err == GNUTLS_E_SHORT_MEMORY_BUFFER) {
            tell(mistakes, text, "more than 16 certificates", "give the chain of this one only");
        } else if (!holds(text->pem, CERT_HEADER)) {
            tell(mistakes, text, "holds no certificate",
                 "give a PEM file that begins with " CERT_HEADER);
        } else {
            tell(mistakes, text, gnutls_strerror(err), "the file is damaged, get it anew");
        }
        return false;
    }
    return true;
}

static void check_dates(const struct tls_text *text, const struct chain *chain, int64_t now_s,
                        struct buf *expired, struct buf *warnings)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const time_t from = gnutls_x509_crt_get_activation_time(chain->certificates[i]);
        const time_t until = gnutls_x509_crt_get_expiration_time(chain->certificates[i]);
        const bool is_early = from != (time_t)-1 && from > now_s;
        const bool is_over = until != (time_t)-1 && until <= now_s;
        const time_t when = is_early ? from : until;
        struct tm tm;
        char date[32] = "", what[96];

        if (!is_early && (until == (time_t)-1 || until > now_s + SOON_S)) {
            continue;
        }
        if (gmtime_r(&when, &tm)) {
            (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
        }
        (void)snprintf(what, sizeof(what), "certificate %u is %s %s", i + 1,
                       is_early  ? "not valid before"
                       : is_over ? "not valid any more since"
                                 : "valid only until",
                       date);
        tell(is_early || is_over ? expired : warnings, text, what,
             is_early ? "is the clock right?" : "renew it, then send HUP");
    }
}

/* ---- certificate and key together, as the listener will take them ---- */

static void tell_pair(const struct tls_texts *texts, int err, struct buf *mistakes)
{
    if (err == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) {
        tell(mistakes, &texts->key, "is the key of another certificate",
             "give the key that tls.certificate was made with (its first certificate must be the "
             "server's own)");
    } else if (err == GNUTLS_E_DECRYPTION_FAILED || holds(texts->key.pem, "ENCRYPTED")) {
        tell(mistakes, &texts->key, "is encrypted, and nobody is there to ask for its password",
             "store it decrypted, readable by outboxd only (openssl pkey -in … -out …)");
    } else if (!holds(texts->key.pem, "PRIVATE KEY-----")) {
        tell(mistakes, &texts->key, "holds no private key",
             "give a PEM file that begins with -----BEGIN PRIVATE KEY-----");
    } else {
        tell(mistakes, &texts->key, gnutls_strerror(err), "give a PEM file with the key alone");
    }
}

static void check_pair(const struct tls_texts *texts, struct buf *mistakes)
{
    const gnutls_datum_t certificate = datum_of(texts->certificate.pem);
    const gnutls_datum_t key = datum_of(texts->key.pem);
    gnutls_certificate_credentials_t credentials = NULL;

    if (gnutls_certificate_allocate_credentials(&credentials) < 0) {
        tell(mistakes, &texts->key, "out of memory", "try again");
        return;
    }
    const int err = gnutls_certificate_set_x509_key_mem2(credentials, &certificate, &key,
                                                         GNUTLS_X509_FMT_PEM, NULL, 0);
    if (err < 0) {
        tell_pair(texts, err, mistakes);
    }
    gnutls_certificate_free_credentials(credentials);
}

void tls_check(const struct tls_texts *texts, int64_t now_s, struct buf *mistakes,
               struct buf *expired, struct buf *warnings)
{
    struct chain chain = {.count = 0};

    if (texts->certificate.pem.ptr && read_chain(&texts->certificate, &chain, mistakes)) {
        check_dates(&texts->certificate, &chain, now_s, expired, warnings);
        free_chain(&chain);
        if (texts->key.pem.ptr) {
            check_pair(texts, mistakes);
        }
    }
    if (texts->client_ca.pem.ptr && read_chain(&texts->client_ca, &chain, mistakes)) {
        check_dates(&texts->client_ca, &chain, now_s, warnings, warnings);
        free_chain(&chain);
    }
}
