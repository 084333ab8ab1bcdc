/* Secrets and signatures of Standard Webhooks. An independent implementation judges them in
 * tests/system/test_webhooks.py; here is the example that its libraries are tested with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/webhook_secret.h"
#include "worker/webhook_signature.h"

static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
static const char id[] = "msg_p5jXN8AQM9LWM0D4loKWxJek";
static const char body[] = "{\"test\": 2432232314}";
static const char signature[] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

static void sign(const char *const *secrets, size_t count, const char *text, struct buf *out)
{
    buf_init(out, 1024);
    assert_int_equal(
        webhook_signature_write(secrets, count, span_of(id), 1614265330, span_of(text), out), 0);
}

static void the_signature_is_that_of_the_specifications_example(void **state)
{
    const char *const secrets[] = {secret};
    struct buf out;

    (void)state;
    sign(secrets, 1, body, &out);
    assert_int_equal(out.len, strlen(signature));
    assert_memory_equal(out.bytes, signature, out.len);
    buf_done(&out);
}

static void each_secret_signs_and_the_first_stands_first(void **state)
{
    const char *const secrets[] = {secret, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", secret};
    struct buf out;

    (void)state;
    sign(secrets, 3, body, &out);
    assert_int_equal(out.len, 3 * strlen(signature) + 2);
    assert_memory_equal(out.bytes, signature, strlen(signature));
    assert_int_equal(out.bytes[strlen(signature)], ' ');
    assert_memory_not_equal(out.bytes + strlen(signature) + 1, signature, strlen(signature));
    assert_memory_equal(out.bytes + 2 * strlen(signature) + 2, signature, strlen(signature));
    buf_done(&out);
}

static void another_body_has_another_signature(void **state)
{
    const char *const secrets[] = {secret};
    static const char *const bodies[] = {"", "{\"test\": 2432232315}", "{\"test\":2432232314}"};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct buf out;

        sign(secrets, 1, bodies[i], &out);
        assert_memory_not_equal(out.bytes, signature, strlen(signature));
        buf_done(&out);
    }
}

/* `len` zero bytes. */
static int read_secret_of(size_t len)
{
    char text[128] = "whsec_";
    struct webhook_key key = {.len = 0};
    size_t at = strlen(text);

    for (size_t left = len; left > 0; left -= left < 3 ? left : 3) {
        snprintf(text + at, sizeof(text) - at, "%s",
                 left >= 3   ? "AAAA"
                 : left == 2 ? "AAA="
                             : "AA==");
        at += 4;
    }
    const int err = webhook_secret_read(text, &key);

    assert_int_equal(key.len, err == 0 ? len : 0);
    return err;
}

static void a_secret_has_24_to_64_bytes(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 80; len++) {
        assert_int_equal(read_secret_of(len), len >= 24 && len <= 64 ? 0 : -EINVAL);
    }
}

static void what_is_no_secret_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "whsec_",
                                        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                        "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
                                        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!",
                                        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw ",
                                        "whsec_MfKQ-r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                        " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct webhook_key key;
        struct buf out;

        buf_init(&out, 1024);
        if (webhook_secret_read(texts[i], &key) != -EINVAL ||
            webhook_signature_write(&texts[i], 1, span_of(id), 1, span_of(body), &out) != -EINVAL) {
            fail_msg("%s", texts[i]);
        }
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signature_is_that_of_the_specifications_example),
        cmocka_unit_test(each_secret_signs_and_the_first_stands_first),
        cmocka_unit_test(another_body_has_another_signature),
        cmocka_unit_test(a_secret_has_24_to_64_bytes),
        cmocka_unit_test(what_is_no_secret_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
