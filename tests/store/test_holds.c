/* A claim that is given back because its target is not asked now: the session rests, and whatever
 * happens meanwhile, nothing in it overtakes and nothing is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define TOKEN_A    "node.1.4.a.1"
#define TOKEN_B    "node.1.5.b.1"
#define LOCK_TTL   60000
#define A_WHILE_MS 60000
#define MOMENT_MS  30

static struct sync_store *s;

static void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

static void accept_entry(const char *id, const char *flags)
{
    assert_int_equal(sync_accept(s, "ws", "ses", id, id, "digest", flags, 25, NULL),
                     ACCEPT_ACCEPTED);
    holds();
}

static struct taken_list claim(const char *token)
{
    struct taken_list list = sync_claim(s, "ws", token, 10, 10, NULL, 0);

    holds();
    return list;
}

static struct taken claim_one(const char *token, const char *id)
{
    struct taken_list list = claim(token);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, id);
    return list.items[0];
}

/* As soon as its session has rested. */
static struct taken claim_after_rest(const char *token, const char *id)
{
    struct taken_list list = claim(token);

    for (int i = 0; list.count == 0 && i < 1000; i++) {
        usleep(5000);
        list = claim(token);
    }
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, id);
    return list.items[0];
}

static long field(const char *id, const char *name)
{
    return strtol(sync_raw(s, "HGET outboxe:{%u}:ws:%s %s", partition_of("ws", 2), id, name), NULL,
                  10);
}

/* Events `retrying`; those with that reason only, if it is not NULL. */
static unsigned count_retrying(const char *reason)
{
    char script[512];

    snprintf(script, sizeof(script),
             "local n = 0 for _, e in ipairs(redis.call('XRANGE', 'outboxev:{%u}', '-', '+')) do "
             "local line = table.concat(e[2], ' ') "
             "if line:find('type retrying', 1, true) and line:find('%s', 1, true) then n = n + 1 "
             "end end return tostring(n)",
             partition_of("ws", 2), reason ? reason : "");
    return (unsigned)strtoul(sync_script(s, script), NULL, 10);
}

static void its_session_rests_and_nothing_is_counted(void **state)
{
    (void)state;
    accept_entry("e1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_int_equal(field("e1", "sends"), 1);
    assert_true(sync_hold(s, &taken, MOMENT_MS, "circuit_open"));
    assert_string_equal(sync_state(s, "ws", "e1"), "pending");
    assert_int_equal(field("e1", "sends"), 0);
    assert_int_equal(field("e1", "nextAttemptAt"), 0);
    assert_int_equal(field("e1", "transientFails"), 0);
    const struct taken_list list = claim(TOKEN_B);

    assert_int_equal(list.count, 0);
    assert_in_range(list.next_due_ms, 0, MOMENT_MS);
    taken = claim_after_rest(TOKEN_B, "e1");
    assert_int_equal(taken.mode, CLAIM_SEND);
    assert_int_equal(taken.sends, 1);
    assert_true(sync_finish(s, &taken, false).applied);
    holds();
}

static void nothing_overtakes_it_not_even_what_is_accepted_meanwhile(void **state)
{
    (void)state;
    accept_entry("e1", "");
    accept_entry("e2", "");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_hold(s, &taken, A_WHILE_MS, "circuit_open"));
    assert_int_equal(claim(TOKEN_B).count, 0);
    accept_entry("e3", ""); /* which has the session looked at again */
    taken = claim_one(TOKEN_B, "e1");
    assert_true(sync_hold(s, &taken, MOMENT_MS, "circuit_open"));
    taken = claim_after_rest(TOKEN_B, "e1");
    struct outcome_copy outcome = sync_finish(s, &taken, true);

    assert_true(outcome.has_next);
    assert_string_equal(outcome.next.id, "e2");
    assert_true(sync_hold(s, &outcome.next, MOMENT_MS, ""));
    taken = claim_after_rest(TOKEN_A, "e2");
    outcome = sync_finish(s, &taken, true);
    assert_string_equal(outcome.next.id, "e3");
    holds();
}

static void what_is_to_be_looked_up_stays_so(void **state)
{
    (void)state;
    accept_entry("e1", "sv");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_limits.verify_delay_ms = 0;
    sync_settle(s, &taken, OUTCOME_AMBIGUOUS, false);
    taken = claim_after_rest(TOKEN_A, "e1");
    assert_int_equal(taken.mode, CLAIM_VERIFY);
    assert_true(sync_hold(s, &taken, MOMENT_MS, "circuit_open"));
    assert_string_equal(sync_state(s, "ws", "e1"), "verifying");
    assert_int_equal(field("e1", "verifyAttempts"), 0);
    assert_int_equal(field("e1", "sends"), 1);
    taken = claim_after_rest(TOKEN_B, "e1");
    assert_int_equal(taken.mode, CLAIM_VERIFY);
    holds();
}

static void told_twice_it_is_done_once(void **state)
{
    (void)state;
    accept_entry("e1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_hold(s, &taken, MOMENT_MS, ""));
    assert_false(sync_hold(s, &taken, A_WHILE_MS, ""));
    struct taken again = claim_after_rest(TOKEN_B, "e1");

    assert_false(sync_hold(s, &taken, A_WHILE_MS, ""));
    assert_true(sync_finish(s, &again, false).applied);
    holds();
}

static void what_was_parked_meanwhile_stays_parked(void **state)
{
    (void)state;
    accept_entry("e1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_walk(s, WALK_PARK, "ws", 0);
    assert_true(sync_hold(s, &taken, MOMENT_MS, "circuit_open"));
    assert_string_equal(sync_state(s, "ws", "e1"), "parked");
    sync_walk(s, WALK_UNPARK, "ws", 0);
    taken = claim_after_rest(TOKEN_B, "e1");
    assert_int_equal(taken.mode, CLAIM_SEND);
    assert_int_equal(taken.sends, 1);
    holds();
}

static void readers_are_told_why_if_there_is_a_reason(void **state)
{
    (void)state;
    accept_entry("e1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_hold(s, &taken, 0, ""));
    assert_int_equal(count_retrying(NULL), 0);
    taken = claim_after_rest(TOKEN_A, "e1");
    assert_true(sync_hold(s, &taken, MOMENT_MS, "circuit_open"));
    assert_int_equal(count_retrying("reason circuit_open"), 1);
    holds();
}

static void an_audit_leaves_a_session_that_rests(void **state)
{
    (void)state;
    accept_entry("e1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_hold(s, &taken, A_WHILE_MS, ""));
    assert_int_equal(sync_audit(s, "ws"), 0);
    assert_int_equal(claim(TOKEN_B).count, 0);
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
        cmocka_unit_test_setup(its_session_rests_and_nothing_is_counted, begin),
        cmocka_unit_test_setup(nothing_overtakes_it_not_even_what_is_accepted_meanwhile, begin),
        cmocka_unit_test_setup(what_is_to_be_looked_up_stays_so, begin),
        cmocka_unit_test_setup(told_twice_it_is_done_once, begin),
        cmocka_unit_test_setup(what_was_parked_meanwhile_stays_parked, begin),
        cmocka_unit_test_setup(readers_are_told_why_if_there_is_a_reason, begin),
        cmocka_unit_test_setup(an_audit_leaves_a_session_that_rests, begin),
    };
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, LOCK_TTL, 60000);
    const int failed = cmocka_run_group_tests_name("holds", tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
