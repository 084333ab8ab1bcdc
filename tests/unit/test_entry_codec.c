/* Entry bodies: there and back, read from other writers' msgpack, and from any bytes at all. Pure.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/entry.h"

/* The second for static tables: ISO C wants no compound literal there. */
#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})
#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static struct entry_body full_body(void)
{
    return (struct entry_body){
        .client_message_id = SPAN("c{}:% \"\xc3\xa4\0z"),
        .user_id = SPAN("u"),
        .kind = SPAN("prompt"),
        .text = SPAN("hello\nworld"),
        .has_text = true,
        .model = SPAN("{\"id\": 1.0}"),
        .payload = SPAN("[null]"),
        .traceparent = SPAN("00-a-b-01"),
        .depends_on = {SPAN("ob_1"), SPAN("ob_2")},
        .depends_on_count = 2,
    };
}

static void assert_same(const struct entry_body *a, const struct entry_body *b)
{
    assert_true(span_equal(a->client_message_id, b->client_message_id));
    assert_true(span_equal(a->user_id, b->user_id));
    assert_true(span_equal(a->kind, b->kind));
    assert_true(span_equal(a->text, b->text));
    assert_int_equal(a->has_text, b->has_text);
    assert_true(span_equal(a->model, b->model));
    assert_true(span_equal(a->payload, b->payload));
    assert_true(span_equal(a->traceparent, b->traceparent));
    assert_int_equal(a->depends_on_count, b->depends_on_count);
    for (uint32_t i = 0; i < a->depends_on_count; i++) {
        assert_true(span_equal(a->depends_on[i], b->depends_on[i]));
    }
}

static void there_and_back(const struct entry_body *body)
{
    struct entry_body back;
    struct buf out;

    buf_init(&out, 1u << 20);
    assert_int_equal(entry_body_encode(body, &out), 0);
    assert_int_equal(entry_body_decode((struct span){out.bytes, out.len}, &back), 0);
    assert_same(body, &back);
    buf_done(&out);
}

static void bodies_come_back_as_they_were(void **state)
{
    struct entry_body body = full_body();
    static char big[70000];

    (void)state;
    there_and_back(&body);
    body = (struct entry_body){0};
    there_and_back(&body);
    body.has_text = true; /* "" is not absent */
    there_and_back(&body);
    for (size_t len = 0; len <= sizeof(big);
         len = len < 300 ? len + 1 : len + 17477) { /* every form of a length */
        body.text = (struct span){big, len};
        there_and_back(&body);
    }
    body.depends_on_count = DEPENDS_ON_MAX;
    for (size_t i = 0; i < DEPENDS_ON_MAX; i++) {
        body.depends_on[i] = SPAN("ob_x");
    }
    there_and_back(&body);
}

static void a_buffer_that_is_too_small_is_told(void **state)
{
    const struct entry_body body = full_body();
    struct buf out;

    (void)state;
    buf_init(&out, 20);
    assert_int_equal(entry_body_encode(&body, &out), -ENOBUFS);
    buf_done(&out);
}

static int decode(struct span bytes, struct entry_body *ret)
{
    /* A copy of exactly that size: a byte read beyond it is caught. */
    char *copy = malloc(bytes.len + (bytes.len == 0));

    assert_non_null(copy);
    memcpy(copy, bytes.ptr, bytes.len);
    int err = entry_body_decode((struct span){copy, bytes.len}, ret);

    free(copy);
    return err;
}

static void what_others_write_is_understood(void **state)
{
    static const struct span good[] = {
        BYTES("\x80"),                                          /* {} */
        BYTES("\x81\xa4text\xc0"),                              /* nil: absent */
        BYTES("\xde\x00\x01\xa4kind\xc4\x01x"),                 /* map 16, bin 8 */
        BYTES("\xdf\x00\x00\x00\x01\xd9\x04kind\xda\x00\x01x"), /* map 32, str 8, str 16 */
        BYTES("\x81\xa4kind\xdb\x00\x00\x00\x01x"),             /* str 32 */
        BYTES("\x81\xa9"
              "dependsOn\x80"), /* an empty table of Lua */
        BYTES("\x81\xa9"
              "dependsOn\xdc\x00\x01\xa1x"),                      /* array 16 */
        BYTES("\x82\xa1x\x93\x01\xff\x81\xa1y\x90\xa4kind\xa1k"), /* unknown, nested */
        BYTES("\x81\xa1x\xcb"
              "12345678"), /* unknown float */
        BYTES("\x81\xa1x\xc7\x03"
              "tabc"), /* unknown ext 8 */
        BYTES("\x81\xa1x\xd8"
              "t0123456789abcdef"),     /* unknown fixext 16 */
        BYTES("\x81\xa1x\xcd\x01\x02"), /* unknown uint 16 */
    };
    struct entry_body body;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(decode(good[i], &body), 0);
        assert_false(body.has_text);
    }
}

static void what_is_no_body_is_refused_and_nothing_written(void **state)
{
    static const struct span bad[] = {
        BYTES(""),
        BYTES("\xc0"),
        BYTES("\x90"), /* an array */
        BYTES("\xa1x"),
        BYTES("\x80\x80"), /* something behind it */
        BYTES("\x81"),
        BYTES("\x81\xa4kind"),
        BYTES("\x81\xa4kind\x01"),  /* a number */
        BYTES("\x81\xa4kind\xa5x"), /* cut */
        BYTES("\x81\x01\xa1x"),     /* a name that is no text */
        BYTES("\x81\xa4kind\xc1"),  /* never used */
        BYTES("\x81\xa9"
              "dependsOn\xa1x"),
        BYTES("\x81\xa9"
              "dependsOn\x91\x01"),
        BYTES("\x81\xa9"
              "dependsOn\xdd\xff\xff\xff\xff"),
        BYTES("\xdf\xff\xff\xff\xff"),
        BYTES("\x81\xa1x\xdd\xff\xff\xff\xff"), /* four billion promised */
        BYTES("\x81\xa1x\xdf\xff\xff\xff\xff\x01"),
        BYTES("\x81\xa1x\xdb\xff\xff\xff\xff"),
        BYTES("\x81\xa1x\xc9\xff\xff\xff\xff"),
        BYTES("\x81\xa1x\xcb"
              "1234567"),
    };
    struct entry_body body;

    (void)state;
    memset(&body, 0x5a, sizeof(body));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(decode(bad[i], &body), -EBADMSG);
    }
    const unsigned char *bytes = (const unsigned char *)&body;

    for (size_t i = 0; i < sizeof(body); i++) {
        assert_int_equal(bytes[i], 0x5a);
    }
}

static void deep_nesting_is_bounded(void **state)
{
    char bytes[100000];
    struct entry_body body;

    (void)state;
    memcpy(bytes, "\x81\xa1x", 3);
    memset(bytes + 3, '\x91', sizeof(bytes) - 3);
    assert_int_equal(decode((struct span){bytes, sizeof(bytes)}, &body), -EBADMSG);
    bytes[3 + 32] = '\x01'; /* 32 deep is still fine */
    assert_int_equal(decode((struct span){bytes, 3 + 33}, &body), 0);
    bytes[3 + 32] = '\x91';
    bytes[3 + 33] = '\x01';
    assert_int_equal(decode((struct span){bytes, 3 + 34}, &body), -EBADMSG);
}

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* Every prefix, and bytes changed at random: a body or -EBADMSG, spans within the input. */
static void any_bytes_are_survived(void **state)
{
    const struct entry_body full = full_body();
    struct entry_body body;
    struct buf out;
    uint64_t seed = 42;

    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(entry_body_encode(&full, &out), 0);
    for (size_t len = 0; len < out.len; len++) {
        assert_int_equal(decode((struct span){out.bytes, len}, &body), -EBADMSG);
    }
    for (int round = 0; round < 100000; round++) {
        char copy[512];
        size_t len = 1 + next_random(&seed) % out.len;

        assert_true(out.len <= sizeof(copy));
        memcpy(copy, out.bytes, out.len);
        for (uint32_t changes = 1 + next_random(&seed) % 4; changes > 0; changes--) {
            copy[next_random(&seed) % out.len] = (char)next_random(&seed);
        }
        len = next_random(&seed) % 4 == 0 ? len : out.len;
        if (entry_body_decode((struct span){copy, len}, &body) == 0) {
            assert_true(body.text.len == 0 ||
                        (body.text.ptr >= copy && body.text.ptr + body.text.len <= copy + len));
            assert_true(body.depends_on_count <= DEPENDS_ON_MAX);
        }
    }
    buf_done(&out);
}

static void a_copy_outlives_what_it_was_copied_from(void **state)
{
    const struct entry_body full = full_body();
    struct buf out;
    char *names = strdup("ob_idsessiondigestsivcodemessage{\"version\":2}because");
    struct entry entry = {
        .id = {names, 5},
        .session = {names + 5, 7},
        .digest = {names + 12, 6},
        .flags = {names + 18, 3},
        .error_code = {names + 21, 4},
        .error_message = {names + 25, 7},
        .conflict_current = {names + 32, 13},
        .parked_reason = {names + 45, 7},
        .status = STATUS_ERROR,
        .is_readable = true,
        .attempts = 3,
    };

    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(entry_body_encode(&full, &out), 0);
    entry.body_bytes = (struct span){out.bytes, out.len};
    assert_int_equal(entry_body_decode(entry.body_bytes, &entry.body), 0);

    struct entry *copy = entry_copy(&entry);

    assert_non_null(copy);
    memset(out.bytes, 0, out.len);
    buf_done(&out);
    free(names);
    assert_same(&copy->body, &full);
    assert_true(span_equal(copy->id, span_of("ob_id")));
    assert_true(span_equal(copy->session, span_of("session")));
    assert_true(span_equal(copy->digest, span_of("digest")));
    assert_true(span_equal(copy->flags, span_of("siv")));
    assert_true(span_equal(copy->error_code, span_of("code")));
    assert_true(span_equal(copy->error_message, span_of("message")));
    assert_true(span_equal(copy->conflict_current, span_of("{\"version\":2}")));
    assert_true(span_equal(copy->parked_reason, span_of("because")));
    assert_int_equal(copy->attempts, 3);
    struct entry *second = entry_copy(copy); /* from a copy, which lies in one piece */

    free(copy);
    assert_non_null(second);
    assert_same(&second->body, &full);
    free(second);

    struct entry_body bare =
        full; /* a body that no msgpack stands behind, as tests and callers make them */
    struct entry loose = {.id = SPAN("ob_id"), .body = bare};

    copy = entry_copy(&loose);
    assert_non_null(copy);
    assert_same(&copy->body, &full);
    free(copy);
    loose = (struct entry){0};
    copy = entry_copy(&loose);
    assert_non_null(copy);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_come_back_as_they_were),
        cmocka_unit_test(a_buffer_that_is_too_small_is_told),
        cmocka_unit_test(what_others_write_is_understood),
        cmocka_unit_test(what_is_no_body_is_refused_and_nothing_written),
        cmocka_unit_test(deep_nesting_is_bounded),
        cmocka_unit_test(any_bytes_are_survived),
        cmocka_unit_test(a_copy_outlives_what_it_was_copied_from),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
