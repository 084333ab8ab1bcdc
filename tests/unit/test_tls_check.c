/* Certificates and keys that a listener can use, and those that it can't, made on the spot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/access/tls_check.h"
#include "common/core/buf.h"

#define DAY ((time_t)24 * 3600)

/* Of two servers, each with a certificate of its own. */
static gnutls_x509_privkey_t keys[2];
static time_t now;

static char *text_of(const gnutls_datum_t *pem)
{
    char *text = strndup((const char *)pem->data, pem->size);

    gnutls_free(pem->data);
    return text;
}

static char *certificate(unsigned which, time_t from, time_t until)
{
    gnutls_x509_crt_t crt;
    gnutls_datum_t pem;

    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_set_key(crt, keys[which]), 0);
    assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(crt, "\1", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_dn(crt, "CN=test", NULL), 0);
    gnutls_x509_crt_set_activation_time(crt, from);
    gnutls_x509_crt_set_expiration_time(crt, until);
    assert_int_equal(gnutls_x509_crt_sign2(crt, crt, keys[which], GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem), 0);
    gnutls_x509_crt_deinit(crt);
    return text_of(&pem);
}

static char *key(unsigned which)
{
    gnutls_datum_t pem;

    assert_int_equal(gnutls_x509_privkey_export2(keys[which], GNUTLS_X509_FMT_PEM, &pem), 0);
    return text_of(&pem);
}

static char *encrypted_key(unsigned which)
{
    gnutls_datum_t pem;

    assert_int_equal(gnutls_x509_privkey_export2_pkcs8(keys[which], GNUTLS_X509_FMT_PEM, "secret",
                                                       GNUTLS_PKCS_PBES2_AES_256, &pem),
                     0);
    return text_of(&pem);
}

static int make_keys(void **state)
{
    (void)state;
    now = time(NULL);
    for (unsigned i = 0; i < 2; i++) {
        if (gnutls_x509_privkey_init(&keys[i]) < 0 ||
            gnutls_x509_privkey_generate(keys[i], GNUTLS_PK_ECDSA,
                                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0) < 0) {
            return -1;
        }
    }
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    gnutls_x509_privkey_deinit(keys[0]);
    gnutls_x509_privkey_deinit(keys[1]);
    return 0;
}

struct told {
    struct buf mistakes, expired, warnings;
};

/* Takes over the texts; NULL: not given. */
static struct told check(char *certificate_pem, char *key_pem, char *client_ca_pem)
{
    struct told told;
    const struct tls_texts texts = {
        .certificate = {"tls.certificate", "c.pem", span_of(certificate_pem)},
        .key = {"tls.key", "k.pem", span_of(key_pem)},
        .client_ca = {"tls.client_ca", "a.pem", span_of(client_ca_pem)},
    };

    buf_init(&told.mistakes, 10000);
    buf_init(&told.expired, 10000);
    buf_init(&told.warnings, 10000);
    tls_check(&texts, now, &told.mistakes, &told.expired, &told.warnings);
    free(certificate_pem);
    free(key_pem);
    free(client_ca_pem);
    return told;
}

/* Each NULL: nothing of that sort. */
static void expect(struct told told, const char *mistake, const char *expired, const char *warning)
{
    const struct {
        struct buf *told;
        const char *wanted;
    } rows[] = {{&told.mistakes, mistake}, {&told.expired, expired}, {&told.warnings, warning}};

    for (size_t i = 0; i < 3; i++) {
        const char *text = rows[i].told->bytes ? rows[i].told->bytes : "";

        if (rows[i].wanted ? !strstr(text, rows[i].wanted) : *text != '\0') {
            fail_msg("%zu: expected: %s\ngot: %s", i, rows[i].wanted ? rows[i].wanted : "nothing",
                     text);
        }
        buf_done(rows[i].told);
    }
}

static void a_certificate_with_its_key_is_fine(void **state)
{
    (void)state;
    expect(check(certificate(0, now - DAY, now + 90 * DAY), key(0), NULL), NULL, NULL, NULL);
    expect(check(certificate(0, now - DAY, now + 90 * DAY), key(0),
                 certificate(1, now - DAY, now + 90 * DAY)),
           NULL, NULL, NULL);
    expect(check(NULL, NULL, NULL), NULL, NULL, NULL);
}

static void a_chain_begins_with_the_servers_own(void **state)
{
    char *own = certificate(0, now - DAY, now + 90 * DAY);
    char *above = certificate(1, now - DAY, now + 90 * DAY);
    char *good = NULL, *wrong = NULL;

    (void)state;
    assert_true(asprintf(&good, "%s%s", own, above) > 0);
    assert_true(asprintf(&wrong, "%s%s", above, own) > 0);
    expect(check(good, key(0), NULL), NULL, NULL, NULL);
    expect(check(wrong, key(0), NULL), "tls.key: k.pem: is the key of another certificate", NULL,
           NULL);
    free(own);
    free(above);
}

static void keys_that_do_not_fit_are_told(void **state)
{
    char *good = NULL;

    (void)state;
    expect(check(certificate(0, now - DAY, now + 90 * DAY), key(1), NULL),
           "tls.key: k.pem: is the key of another certificate: give the key that", NULL, NULL);
    expect(check(certificate(0, now - DAY, now + 90 * DAY), encrypted_key(0), NULL),
           "tls.key: k.pem: is encrypted, and nobody is there", NULL, NULL);
    expect(check(certificate(0, now - DAY, now + 90 * DAY), strdup("hello"), NULL),
           "tls.key: k.pem: holds no private key: give a PEM file", NULL, NULL);
    expect(check(certificate(0, now - DAY, now + 90 * DAY), strdup(""), NULL),
           "tls.key: k.pem: holds no private key", NULL, NULL);
    good = key(0);
    good[strlen(good) / 2] = '!';
    expect(check(certificate(0, now - DAY, now + 90 * DAY), good, NULL), "tls.key: k.pem: ", NULL,
           NULL);
}

static void certificates_that_are_none_are_told(void **state)
{
    char *damaged = certificate(0, now - DAY, now + 90 * DAY);

    (void)state;
    expect(check(strdup("hello"), key(0), NULL),
           "tls.certificate: c.pem: holds no certificate: give a PEM file", NULL, NULL);
    expect(check(key(0), key(0), NULL), "tls.certificate: c.pem: holds no certificate", NULL, NULL);
    damaged[strlen(damaged) / 2] = '!';
    expect(check(damaged, key(0), NULL), "tls.certificate: c.pem: ", NULL, NULL);
    expect(check(certificate(0, now - DAY, now + 90 * DAY), key(0), strdup("x")),
           "tls.client_ca: a.pem: holds no certificate", NULL, NULL);
}

static void what_has_run_out_is_told_apart(void **state)
{
    (void)state;
    expect(check(certificate(0, now - 9 * DAY, now - DAY), key(0), NULL), NULL,
           "tls.certificate: c.pem: certificate 1 is not valid any more since 20", NULL);
    expect(check(certificate(0, now + DAY, now + 90 * DAY), key(0), NULL), NULL,
           "certificate 1 is not valid before 20", NULL);
    expect(check(certificate(0, now - DAY, now + 3 * DAY), key(0), NULL), NULL, NULL,
           "certificate 1 is valid only until 20");
    expect(check(certificate(0, now - DAY, now + 90 * DAY), key(0),
                 certificate(1, now - 9 * DAY, now - DAY)),
           NULL, NULL, "tls.client_ca: a.pem: certificate 1 is not valid any more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_with_its_key_is_fine),
        cmocka_unit_test(a_chain_begins_with_the_servers_own),
        cmocka_unit_test(keys_that_do_not_fit_are_told),
        cmocka_unit_test(certificates_that_are_none_are_told),
        cmocka_unit_test(what_has_run_out_is_told_apart),
    };

    return cmocka_run_group_tests_name("tls_check", tests, make_keys, free_keys);
}
