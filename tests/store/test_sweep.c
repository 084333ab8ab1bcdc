/* The sweeps' scripts on a real server: what is taken, and what is done with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "common/store/store_sweep.h"
#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define TOKEN "node.1.4.a.1"

static struct sync_store *s;
static uint32_t p; /* partition of `ws` */

static void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

/* ---- blocking calls ---- */

struct taken_entries {
    bool is_done, has_more, yes;
    size_t count;
    char ids[16][64];
    uint32_t attempts[16];
};

static void wait_for(struct taken_entries *wait)
{
    while (!wait->is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
}

static void on_taken(enum store_result result, const struct sweep_take_answer *answer, void *arg)
{
    struct taken_entries *taken = arg;

    assert_int_equal(result, STORE_OK);
    taken->is_done = true;
    taken->has_more = answer->has_more;
    taken->count = answer->count;
    for (size_t i = 0; i < answer->count; i++) {
        const struct span id = answer->entries[i].entry.id;

        assert_true(answer->entries[i].entry.is_readable);
        assert_int_equal(answer->entries[i].workspace.len, 2);
        snprintf(taken->ids[i], sizeof(taken->ids[i]), "%.*s", (int)id.len, id.ptr);
        taken->attempts[i] = answer->entries[i].entry.attempts;
    }
}

static struct taken_entries take(uint32_t max, int64_t hold_ms)
{
    struct taken_entries taken = {0};

    store_sweep_take(s->store, p, max, hold_ms, on_taken, &taken);
    wait_for(&taken);
    holds();
    return taken;
}

static void on_flag(enum store_result result, bool yes, void *arg)
{
    struct taken_entries *wait = arg;

    assert_int_equal(result, STORE_OK);
    wait->is_done = true;
    wait->yes = yes;
}

/* As if it had been looked up with one attempt and one request, `attempts_exhausted`. */
static bool settle(const char *id, enum entry_status to, uint32_t new_attempts)
{
    const struct sweep_settle_request request = {
        .workspace = span_of("ws"),
        .id = span_of(id),
        .attempts = 1,
        .sends = 1,
        .error_code = span_of("attempts_exhausted"),
        .to = to,
        .new_attempts = new_attempts,
        .via = VIA_LEDGER,
    };
    struct taken_entries wait = {0};

    store_sweep_settle(s->store, &request, on_flag, &wait);
    wait_for(&wait);
    holds();
    return wait.yes;
}

static void on_outcome(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    struct taken_entries *wait = arg;

    assert_int_equal(result, STORE_OK);
    assert_true(answer->applied);
    wait->is_done = true;
}

/* An entry in `error` after one refused attempt, which the sweep of ledgers may settle. */
static void make_error(const char *ses, const char *id, const char *cmid)
{
    sync_accept(s, "ws", ses, id, cmid, "digest", "v", 25, NULL);
    struct taken_list list = sync_claim(s, "ws", TOKEN, 1, 1, NULL, 0);

    assert_int_equal(list.count, 1);
    const struct taken *taken = &list.items[0];
    const struct settle_request request = {
        .ref = {span_of("ws"), span_of(ses), span_of(id), taken->token, 1, STATUS_DELIVERING},
        .step = {.state = {.status = STATUS_ERROR, .attempts = 1},
                 .delay_ms = -1,
                 .code = CODE_ATTEMPTS_EXHAUSTED,
                 .event = EVENT_ERROR},
        .error_code = span_of("attempts_exhausted"),
        .error_message = span_of("refused"),
        .sweep = span_of("ledger"),
    };
    struct taken_entries wait = {0};

    store_settle(s->store, &request, on_outcome, &wait);
    wait_for(&wait);
    holds();
}

static const char *field(const char *id, const char *name)
{
    return sync_raw(s, "HGET outboxe:{%u}:ws:%s %s", p, id, name);
}

static const char *listed(void)
{
    return sync_raw(s, "ZCARD outboxerr:{%u}", p);
}

/* ---- the tests ---- */

static void an_entry_that_was_taken_is_not_taken_again_before_its_time(void **state)
{
    (void)state;
    make_error("s1", "e1", "");
    make_error("s2", "e2", "");
    struct taken_entries first = take(1, 60000);

    assert_int_equal(first.count, 1);
    assert_true(first.has_more);
    assert_int_equal(first.attempts[0], 1);
    struct taken_entries second = take(10, 60000);

    assert_int_equal(second.count, 1);
    assert_string_not_equal(first.ids[0], second.ids[0]);
    struct taken_entries third = take(10, 60000);

    assert_int_equal(third.count, 0);
    assert_false(third.has_more);
    assert_string_equal(listed(), "2");
    /* By hand: due at once again. */
    sync_raw(s, "ZADD outboxerr:{%u} XX 0 ws:e1", p);
    assert_int_equal(take(10, 60000).count, 1);
}

static void what_left_error_is_not_taken(void **state)
{
    (void)state;
    make_error("s1", "e1", "");
    make_error("s2", "e2", "");
    assert_int_equal(sync_retry(s, "ws", "e1", "new", NULL), PERSON_DONE);
    assert_int_equal(sync_remove(s, "ws", "e2", NULL), PERSON_DONE);
    assert_string_equal(listed(), "0");
    /* Members that somebody left behind go as soon as they are met. */
    sync_raw(s, "ZADD outboxerr:{%u} 0 ws:e1 0 ws:e2 0 garbage 0 ws:", p);
    struct taken_entries taken = take(10, 60000);

    assert_int_equal(taken.count, 0);
    assert_true(taken.has_more);
    assert_string_equal(listed(), "0");
}

static void an_entry_that_the_target_has_ends_once(void **state)
{
    (void)state;
    make_error("s1", "e1", "m1");
    assert_true(settle("e1", STATUS_ENDED, 1));
    assert_string_equal(sync_state(s, "ws", "e1"), "sent");
    assert_false(settle("e1", STATUS_ENDED, 1));
    assert_string_equal(listed(), "0");
    assert_string_equal(sync_raw(s, "EXISTS outboxq:{%u}:ws:s1", p), "0");
    assert_int_equal(sync_accept(s, "ws", "s1", "e2", "m1", "digest", "v", 25, NULL),
                     ACCEPT_DUPLICATE);
    assert_string_equal(
        sync_script(s, "#!lua flags=no-writes,allow-cross-slot-keys\n"
                       "local n = 0\n"
                       "for _, k in ipairs(redis.call('KEYS', 'outboxev:*')) do\n"
                       "  for _, e in ipairs(redis.call('XRANGE', k, '-', '+')) do\n"
                       "    local words = table.concat(e[2], ' ')\n"
                       "    if words:find('type sent') and words:find('via ledger') then n = n + "
                       "1 end\n"
                       "  end\n"
                       "end\n"
                       "return tostring(n)\n"),
        "1");
}

static void a_rearmed_entry_is_due_now_in_its_place(void **state)
{
    (void)state;
    make_error("s1", "e1", "");
    make_error("s1", "e2", "");
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 transientFails 9 verifyAttempts 9", p);
    assert_true(settle("e1", STATUS_PENDING, 2));
    assert_string_equal(field("e1", "status"), "pending");
    assert_string_equal(field("e1", "attempts"), "2");
    assert_string_equal(field("e1", "transientFails"), "0");
    assert_string_equal(listed(), "1");
    assert_false(settle("e1", STATUS_PENDING, 2)); /* it is no longer as it was looked up */
    assert_true(settle("e2", STATUS_VERIFYING, 1));
    assert_string_equal(field("e2", "status"), "verifying");
    assert_string_equal(field("e2", "verifyAttempts"), "0");
    struct taken_list list = sync_claim(s, "ws", TOKEN, 10, 10, NULL, 0);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, "e1");
    assert_int_equal(list.items[0].mode, CLAIM_VERIFY);
    holds();
}

static void an_adopted_count_leaves_it_where_it_is(void **state)
{
    (void)state;
    make_error("s1", "e1", "");
    assert_true(settle("e1", STATUS_ERROR, 2));
    assert_string_equal(field("e1", "attempts"), "2");
    assert_string_equal(field("e1", "status"), "error");
    assert_string_equal(listed(), "1");
    assert_false(settle("e1", STATUS_ENDED, 2)); /* found out when the count was another */
    assert_string_equal(sync_state(s, "ws", "e1"), "error");
}

static void what_changed_since_the_look_up_is_left_alone(void **state)
{
    (void)state;
    make_error("s1", "e1", "");
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 sends 2", p);
    assert_false(settle("e1", STATUS_ENDED, 1));
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 sends 1 lastError {\"code\":\"unreachable\"}", p);
    assert_false(settle("e1", STATUS_PENDING, 1));
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 lastError garbage", p);
    assert_false(settle("e1", STATUS_PENDING, 1));
    assert_string_equal(sync_state(s, "ws", "e1"), "error");
    sync_retry(s, "ws", "e1", "again", NULL);
    assert_false(settle("e1", STATUS_VERIFYING, 1));
    assert_string_equal(sync_state(s, "ws", "e1"), "pending");
}

static void a_persons_retry_raises_the_base_by_what_may_be_spent(void **state)
{
    static const struct {
        const char *code;
        const char *sends, *base, *after;
    } rows[] = {
        {"{\"code\":\"attempts_exhausted\"}", "1", "0", "1"},
        {"{\"code\":\"unreachable\"}", "1", "4", "5"},
        {"{\"code\":\"unverifiable\"}", "1", "0", "2"},
        {"{\"code\":\"executor_error\"}", "1", "4", "6"},
        {"garbage", "1", "0", "2"},
        {"{\"code\":\"executor_error\"}", "0", "0", "1"},
    };

    (void)state;
    make_error("s1", "e1", "");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char again[16];

        if (i > 0) {
            sync_raw(s, "FLUSHALL");
            make_error("s1", "e1", "");
        }
        snprintf(again, sizeof(again), "again%zu", i);
        sync_raw(s, "HSET outboxe:{%u}:ws:e1 lastError %s sends %s attemptBase %s", p, rows[i].code,
                 rows[i].sends, rows[i].base);
        assert_int_equal(sync_retry(s, "ws", "e1", again, NULL), PERSON_DONE);
        assert_string_equal(field("e1", "attemptBase"), rows[i].after);
        assert_string_equal(field("e1", "attempts"), "0");
    }
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
        cmocka_unit_test_setup(an_entry_that_was_taken_is_not_taken_again_before_its_time, begin),
        cmocka_unit_test_setup(what_left_error_is_not_taken, begin),
        cmocka_unit_test_setup(an_entry_that_the_target_has_ends_once, begin),
        cmocka_unit_test_setup(a_rearmed_entry_is_due_now_in_its_place, begin),
        cmocka_unit_test_setup(an_adopted_count_leaves_it_where_it_is, begin),
        cmocka_unit_test_setup(what_changed_since_the_look_up_is_left_alone, begin),
        cmocka_unit_test_setup(a_persons_retry_raises_the_base_by_what_may_be_spent, begin),
    };
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, 60000, 60000);
    p = partition_of("ws", 2);
    int failed = cmocka_run_group_tests_name("sweep", tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
