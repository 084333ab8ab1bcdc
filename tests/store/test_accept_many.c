/* Several messages accepted by one script run: what stands in the store afterwards is what stands
 * there when they come one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/store/store_accept_many.h"
#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define CAP 3

static struct sync_store *s;

struct message {
    const char *session, *id, *cmid, *digest, *depends_on;
};

/* Results as words: accepted, duplicate, reuse, full, failed. */
struct accepted {
    bool is_done;
    enum store_result result;
    size_t count;
    char words[ACCEPT_MANY_MAX][16], ids[ACCEPT_MANY_MAX][64];
};

static const char *word_of(enum accept_result result)
{
    static const char *const words[] = {"accepted", "duplicate", "reuse", "full"};

    return words[result];
}

static void on_many(enum store_result result, const struct accept_many_item *items, size_t count,
                    void *arg)
{
    struct accepted *outcome = arg;

    for (size_t i = 0; i < count; i++) {
        const struct span id = items[i].answer.id;

        snprintf(outcome->words[i], sizeof(outcome->words[i]), "%s",
                 items[i].result == STORE_OK ? word_of(items[i].answer.result) : "failed");
        snprintf(outcome->ids[i], sizeof(outcome->ids[i]), "%.*s", (int)id.len,
                 id.len > 0 ? id.ptr : "");
    }
    outcome->count = count;
    outcome->result = result;
    outcome->is_done = true;
}

static int add(struct accept_many *many, const struct message *message)
{
    struct entry_body body = {
        .client_message_id = span_of(message->cmid),
        .kind = span_of("note"),
        .text = span_of(message->id),
        .has_text = true,
        .depends_on_count = message->depends_on != NULL,
    };
    const struct accept_request request = {
        .workspace = span_of("ws"),
        .session = span_of(message->session),
        .id = span_of(message->id),
        .digest = span_of(message->digest),
        .flags = span_of("s"),
        .body = &body,
        .session_cap = CAP,
    };

    body.depends_on[0] = span_of(message->depends_on);
    return accept_many_add(many, &request);
}

static struct accepted accept_messages(const struct message *messages, size_t count)
{
    struct accept_many *many = accept_many_create(s->store, partition_of("ws", 2));
    struct accepted outcome = {0};

    assert_non_null(many);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(add(many, &messages[i]), 0);
    }
    accept_many_send(&many, on_many, &outcome);
    assert_null(many);
    while (!outcome.is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    return outcome;
}

/* Everything in the store but times, as text. */
static char *describe_store(void)
{
    static const char script[] =
        "local keys, out = redis.call('KEYS', '*'), {} table.sort(keys)"
        " for _, k in ipairs(keys) do local t, v = redis.call('TYPE', k).ok, nil"
        "  if t == 'string' then v = {redis.call('GET', k)}"
        "  elseif t == 'list' then v = redis.call('LRANGE', k, 0, -1)"
        "  elseif t == 'set' then v = redis.call('SMEMBERS', k) table.sort(v)"
        "  elseif t == 'zset' then v = redis.call('ZRANGE', k, 0, -1) table.sort(v)"
        "   for i, m in ipairs(v) do if redis.call('ZSCORE', k, m) == 'inf' then v[i] = m .. '!' "
        "end end"
        "  elseif t == 'hash' then v = {} for _, f in ipairs(redis.call('HKEYS', k)) do"
        "   v[#v + 1] = f .. '=' .. (f == 'acceptedAt' and '' or redis.call('HGET', k, f)) end "
        "table.sort(v)"
        "  else v = {} for _, e in ipairs(redis.call('XRANGE', k, '-', '+')) do"
        "   v[#v + 1] = table.concat(e[2], ',') end end"
        "  out[#out + 1] = k .. ': ' .. table.concat(v, ' ') end"
        " return table.concat(out, '\\n')";
    redisReply *reply = redisCommand(s->raw, "EVAL %s 0", script);

    assert_non_null(reply);
    if (reply->type != REDIS_REPLY_STRING) {
        fail_msg("%s", reply->str);
    }
    char *text = strdup(reply->str);

    assert_non_null(text);
    freeReplyObject(reply);
    return text;
}

static void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

static const struct message various[] = {
    {"a", "ob_a1", "m1", "d", NULL},     {"b", "ob_b1", "", "d", NULL},
    {"a", "ob_a2", "m2", "d", NULL},     {"a", "ob_a3", "m1", "d", NULL},      /* duplicate */
    {"a", "ob_a4", "m2", "other", NULL},                                       /* reuse */
    {"c", "ob_c1", "m1", "d", "ob_a1"},                                        /* waits */
    {"c", "ob_c2", "m2", "d", NULL},     {"d", "ob_d1", "m1", "d", "ob_none"}, /* fails */
    {"a", "ob_a5", "m5", "d", NULL},     {"a", "ob_a6", "m6", "d", NULL},      /* full */
    {"a", "ob_a7", "m5", "d", NULL},                                           /* duplicate */
    {"b", "ob_b2", "m:%", "d", "ob_c2"},
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void what_is_stored_is_what_one_by_one_gives(void **state)
{
    struct accepted outcome = accept_messages(various, COUNT(various));
    char *at_once = describe_store();

    (void)state;
    holds();
    assert_int_equal(outcome.result, STORE_OK);
    assert_int_equal(outcome.count, COUNT(various));
    sync_raw(s, "FLUSHALL");
    for (size_t i = 0; i < COUNT(various); i++) {
        const struct accepted alone = accept_messages(&various[i], 1);

        assert_string_equal(alone.words[0], outcome.words[i]);
        assert_string_equal(alone.ids[0], outcome.ids[i]);
    }
    char *by_one = describe_store();

    assert_string_equal(at_once, by_one);
    assert_string_equal(outcome.words[3], "duplicate");
    assert_string_equal(outcome.ids[3], "ob_a1");
    assert_string_equal(outcome.words[4], "reuse");
    assert_string_equal(outcome.words[9], "full");
    assert_string_equal(outcome.words[10], "duplicate");
    free(at_once);
    free(by_one);
}

/* The other script, for messages that come alone: the same text in the same store. */
static void what_is_stored_is_what_the_script_for_one_gives(void **state)
{
    static const struct message plain[] = {
        {"a", "ob_a1", "m1", "digest", NULL}, {"b", "ob_b1", "", "digest", NULL},
        {"a", "ob_a2", "m2", "digest", NULL}, {"a", "ob_a3", "m1", "digest", NULL},
        {"a", "ob_a4", "", "digest", NULL},   {"a", "ob_a5", "m5", "digest", NULL},
    };
    const struct accepted outcome = accept_messages(plain, COUNT(plain));
    char *at_once = describe_store();

    (void)state;
    sync_raw(s, "FLUSHALL");
    for (size_t i = 0; i < COUNT(plain); i++) {
        const enum accept_result result = sync_accept(
            s, "ws", plain[i].session, plain[i].id, plain[i].cmid, plain[i].digest, "s", CAP, NULL);

        assert_string_equal(word_of(result), outcome.words[i]);
    }
    char *alone = describe_store();

    assert_string_equal(at_once, alone);
    free(at_once);
    free(alone);
}

static void a_call_that_is_repeated_changes_nothing_and_answers_the_same(void **state)
{
    const struct accepted first = accept_messages(various, COUNT(various));
    char *before = describe_store();
    const struct accepted again = accept_messages(various, COUNT(various));
    char *after = describe_store();

    (void)state;
    assert_string_equal(before, after);
    for (size_t i = 0; i < COUNT(various); i++) {
        assert_string_equal(again.words[i], first.words[i]);
    }
    free(before);
    free(after);
}

static void garbage_in_one_session_fails_its_messages_and_no_others(void **state)
{
    static const struct message messages[] = {
        {"a", "ob_a1", "m1", "d", NULL},    {"b", "ob_b1", "m1", "d", NULL},
        {"c", "ob_c1", "m1", "d", "ob_a1"}, /* who waits for ob_a1 stands in no set */
        {"c", "ob_c2", "m2", "d", NULL},    /* and nothing overtakes it */
        {"a", "ob_a2", "m2", "d", NULL},
    };
    char key[64];

    (void)state;
    snprintf(key, sizeof(key), "SET outboxq:{%u}:ws:b garbage", partition_of("ws", 2));
    sync_raw(s, "%s", key);
    snprintf(key, sizeof(key), "SET outboxdep:{%u}:ws:ob_a1 garbage", partition_of("ws", 2));
    sync_raw(s, "%s", key);
    const struct accepted outcome = accept_messages(messages, COUNT(messages));

    assert_int_equal(outcome.result, STORE_OK);
    assert_string_equal(outcome.words[0], "accepted");
    assert_string_equal(outcome.words[1], "failed");
    assert_string_equal(outcome.words[2], "failed");
    assert_string_equal(outcome.words[3], "failed");
    assert_string_equal(outcome.words[4], "accepted");
}

static void a_call_takes_so_many_and_never_refuses_the_first(void **state)
{
    struct accept_many *many = accept_many_create(s->store, 1);
    const size_t long_len = ACCEPT_MANY_BYTES * 2;
    char *text = calloc(1, long_len + 1);

    (void)state;
    assert_non_null(many);
    assert_non_null(text);
    for (int i = 0; i < ACCEPT_MANY_MAX; i++) {
        assert_int_equal(add(many, &various[0]), 0);
    }
    assert_int_equal(add(many, &various[0]), -ENOSPC);
    accept_many_destroy(&many);
    accept_many_destroy(&many);

    memset(text, 'x', long_len);
    const struct message huge = {"a", "ob_1", "m", text, NULL};

    many = accept_many_create(s->store, 1);
    assert_non_null(many);
    assert_int_equal(add(many, &huge), 0);
    assert_int_equal(add(many, &various[0]), -ENOSPC);
    accept_many_destroy(&many);
    free(text);
}

static int begin(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_stored_is_what_one_by_one_gives, begin),
        cmocka_unit_test_setup(what_is_stored_is_what_the_script_for_one_gives, begin),
        cmocka_unit_test_setup(a_call_that_is_repeated_changes_nothing_and_answers_the_same, begin),
        cmocka_unit_test_setup(garbage_in_one_session_fails_its_messages_and_no_others, begin),
        cmocka_unit_test_setup(a_call_takes_so_many_and_never_refuses_the_first, begin),
    };
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, 60000, 60000);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
