/* Each transition script on a real server, one sentence per test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define TOKEN_A  "node.1.4.a.1"
#define TOKEN_B  "node.1.5.b.1"
#define LOCK_TTL 60000

static struct sync_store *s;

static void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

static enum accept_result accept_in(const char *ws, const char *ses, const char *id,
                                    const char *cmid, const char *flags)
{
    enum accept_result result = sync_accept(s, ws, ses, id, cmid, "digest", flags, 25, NULL);

    holds();
    return result;
}

static struct taken_list claim(const char *token)
{
    struct taken_list list = sync_claim(s, "ws", token, 10, 10, NULL, 0);

    holds();
    return list;
}

static struct taken claim_one(const char *token, const char *expected_id)
{
    struct taken_list list = claim(token);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, expected_id);
    return list.items[0];
}

static void a_repeated_client_message_id_gets_the_first_entry(void **state)
{
    char id[64];

    (void)state;
    assert_int_equal(accept_in("ws", "ses", "e1", "m1", "s"), ACCEPT_ACCEPTED);
    assert_int_equal(sync_accept(s, "ws", "ses", "e2", "m1", "digest", "s", 25, id),
                     ACCEPT_DUPLICATE);
    assert_string_equal(id, "e1");
    assert_string_equal(sync_raw(s, "LLEN outboxq:{%u}:ws:ses", partition_of("ws", 2)), "1");
    holds();
}

static void the_same_client_message_id_with_another_body_is_refused(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "m1", "s");
    assert_int_equal(sync_accept(s, "ws", "ses", "e2", "m1", "other", "s", 25, NULL),
                     ACCEPT_KEY_REUSE);
    holds();
}

static void a_refused_message_leaves_no_marker(void **state)
{
    (void)state;
    assert_int_equal(sync_accept(s, "ws", "ses", "e1", "m1", "d", "s", 1, NULL), ACCEPT_ACCEPTED);
    assert_int_equal(sync_accept(s, "ws", "ses", "e2", "m2", "d", "s", 1, NULL),
                     ACCEPT_SESSION_FULL);
    assert_string_equal(sync_raw(s, "EXISTS outboxdedupe:{%u}:ws:ses:m2", partition_of("ws", 2)),
                        "0");
    holds();
}

static void names_with_colons_and_percent_signs_never_collide(void **state)
{
    (void)state;
    assert_int_equal(accept_in("ws", "a", "e1", "b:c", "s"), ACCEPT_ACCEPTED);
    assert_int_equal(accept_in("ws", "a:b", "e2", "c", "s"), ACCEPT_ACCEPTED);
    assert_int_equal(accept_in("ws", "a%3Ab", "e3", "c", "s"), ACCEPT_ACCEPTED);
    assert_int_equal(accept_in("ws", "a", "e4", "{x} \"q\" \xc3\xa9", "s"), ACCEPT_ACCEPTED);
    struct taken_list list = claim(TOKEN_A);

    assert_int_equal(list.count, 3);
}

static void a_duplicate_of_an_ended_entry_says_how_it_ended(void **state)
{
    char id[64];

    (void)state;
    accept_in("ws", "ses", "e1", "m1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_finish(s, &taken, false);
    assert_int_equal(sync_accept(s, "ws", "ses", "e2", "m1", "digest", "s", 25, id),
                     ACCEPT_DUPLICATE);
    assert_string_equal(id, "e1");
    assert_string_equal(sync_state(s, "ws", "e1"), "sent");
    holds();
}

static void one_session_has_one_delivery_in_flight(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "", "s");
    accept_in("ws", "ses", "e2", "", "s");
    claim_one(TOKEN_A, "e1");
    assert_int_equal(claim(TOKEN_B).count, 0);
}

static void finishing_takes_the_next_entry_under_the_same_lock(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "m1", "s");
    accept_in("ws", "ses", "e2", "m2", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");
    struct outcome_copy outcome = sync_finish(s, &taken, true);

    assert_true(outcome.applied && outcome.has_next);
    assert_string_equal(outcome.next.id, "e2");
    holds();
    /* The answer was lost and the call is repeated: nothing changes, the answer is the same. */
    outcome = sync_finish(s, &taken, true);
    assert_false(outcome.applied);
    assert_true(outcome.has_next);
    assert_string_equal(outcome.next.id, "e2");
    assert_int_equal(outcome.next.sends, 1);
    holds();
}

static void
a_confirmation_from_an_earlier_claim_ends_the_entry_but_not_the_new_owners_lock(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "m1", "s");
    struct taken old = claim_one(TOKEN_A, "e1");

    assert_true(sync_recover(s, "ws", "ses", TOKEN_A));
    struct taken fresh = claim_one(TOKEN_B, "e1");
    struct outcome_copy outcome = sync_finish(s, &old, true);

    assert_true(outcome.applied);
    assert_false(outcome.has_next);
    assert_string_equal(sync_raw(s, "GET outboxlock:{%u}:ws:ses", partition_of("ws", 2)), TOKEN_B);
    holds();
    outcome = sync_finish(s, &fresh, true);
    assert_false(outcome.applied);
    assert_string_equal(sync_raw(s, "EXISTS outboxlock:{%u}:ws:ses", partition_of("ws", 2)), "0");
    holds();
}

static void a_strict_entry_in_backoff_blocks_those_behind_it(void **state)
{
    (void)state;
    sync_limits.retry_backoff_ms = sync_limits.max_backoff_ms = 60000;
    accept_in("ws", "ses", "e1", "", "s");
    accept_in("ws", "ses", "e2", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");
    struct outcome_copy outcome = sync_settle(s, &taken, OUTCOME_REJECTED, true);

    assert_true(outcome.applied);
    assert_false(outcome.has_next);
    assert_true(outcome.next_due_ms > 0);
    assert_int_equal(claim(TOKEN_B).count, 0);
}

static void a_first_due_entry_in_backoff_is_passed_over(void **state)
{
    (void)state;
    sync_limits.retry_backoff_ms = sync_limits.max_backoff_ms = 60000;
    accept_in("ws", "ses", "e1", "", "");
    accept_in("ws", "ses", "e2", "", "");
    struct taken taken = claim_one(TOKEN_A, "e1");
    struct outcome_copy outcome = sync_settle(s, &taken, OUTCOME_REJECTED, true);

    assert_true(outcome.has_next);
    assert_string_equal(outcome.next.id, "e2");
    holds();
}

static void an_error_entry_is_passed_over_and_can_be_retried_in_its_place(void **state)
{
    char what[32];

    (void)state;
    accept_in("ws", "ses", "e1", "", "s");
    accept_in("ws", "ses", "e2", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");
    struct outcome_copy outcome = sync_settle(s, &taken, OUTCOME_FAILED, true);

    assert_string_equal(outcome.next.id, "e2");
    assert_int_equal(sync_retry(s, "ws", "e2", "n", NULL), PERSON_BUSY);
    assert_int_equal(sync_remove(s, "ws", "e2", NULL), PERSON_BUSY);
    assert_int_equal(sync_retry(s, "ws", "e1", "n", what), PERSON_DONE);
    assert_string_equal(what, "retried");
    holds();
    outcome = sync_settle(s, &outcome.next, OUTCOME_REJECTED, true);
    assert_string_equal(outcome.next.id, "e1");
    holds();
    assert_int_equal(sync_retry(s, "ws", "e2", "n", NULL), PERSON_NOT_FAILED);
    assert_int_equal(sync_retry(s, "ws", "nobody", "n", NULL), PERSON_NOT_FOUND);
}

static void a_retry_of_an_idempotent_kind_is_a_new_entry_at_the_end_of_its_lane(void **state)
{
    char what[32], id[64];

    (void)state;
    accept_in("ws", "ses", "e1", "m1", "si");
    accept_in("ws", "ses", "e2", "m2", "si");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_settle(s, &taken, OUTCOME_FAILED, false);
    assert_int_equal(sync_retry(s, "ws", "e1", "e9", what), PERSON_DONE);
    assert_string_equal(what, "replaced");
    holds();
    assert_int_equal(sync_retry(s, "ws", "e1", "e9", what),
                     PERSON_DONE); /* repeated: the same answer */
    assert_string_equal(sync_state(s, "ws", "e1"), "replaced");
    assert_int_equal(sync_accept(s, "ws", "ses", "x", "m1", "digest", "si", 25, id),
                     ACCEPT_DUPLICATE);
    assert_string_equal(id, "e9");
    taken = claim_one(TOKEN_A, "e2");
    struct outcome_copy outcome = sync_finish(s, &taken, true);

    assert_string_equal(outcome.next.id, "e9");
    assert_int_equal(outcome.next.sends, 1);
    holds();
}

static void a_removed_entry_is_gone_and_its_removal_may_be_repeated(void **state)
{
    char what[32];

    (void)state;
    accept_in("ws", "ses", "e1", "m1", "s");
    assert_int_equal(sync_remove(s, "ws", "e1", what), PERSON_DONE);
    assert_string_equal(what, "removed");
    assert_int_equal(sync_remove(s, "ws", "e1", what), PERSON_DONE);
    assert_int_equal(claim(TOKEN_A).count, 0);
    assert_string_equal(sync_raw(s, "EXISTS outboxws:{%u}:ws", partition_of("ws", 2)), "0");
    assert_string_equal(sync_raw(s, "EXISTS outboxdue:{%u}", partition_of("ws", 2)), "0");
}

static void recovery_of_a_kind_that_is_not_idempotent_verifies(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "m1", "sv");
    claim_one(TOKEN_A, "e1");
    assert_false(sync_recover(s, "ws", "ses", TOKEN_B)); /* not its token: untouched */
    assert_string_equal(sync_state(s, "ws", "e1"), "delivering");
    assert_true(sync_recover(s, "ws", "ses", TOKEN_A));
    assert_string_equal(sync_state(s, "ws", "e1"), "verifying");
    assert_false(sync_recover(s, "ws", "ses", TOKEN_A));
    struct taken taken = claim_one(TOKEN_B, "e1");

    assert_int_equal(taken.mode, CLAIM_VERIFY);
    assert_int_equal(taken.sends, 1);
}

static void recovery_of_an_idempotent_kind_sends_again(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "m1", "si");
    claim_one(TOKEN_A, "e1");
    assert_true(sync_recover(s, "ws", "ses", TOKEN_A));
    struct taken taken = claim_one(TOKEN_B, "e1");

    assert_int_equal(taken.mode, CLAIM_SEND);
    assert_int_equal(taken.sends, 2);
}

static void a_late_outcome_of_a_recovered_claim_changes_nothing(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "m1", "si");
    struct taken old = claim_one(TOKEN_A, "e1");

    sync_recover(s, "ws", "ses", TOKEN_A);
    struct taken fresh = claim_one(TOKEN_B, "e1");
    struct outcome_copy outcome = sync_settle(s, &old, OUTCOME_FAILED, true);

    assert_false(outcome.applied);
    assert_string_equal(sync_state(s, "ws", "e1"), "delivering");
    assert_true(sync_finish(s, &fresh, false).applied);
    holds();
}

static void a_resend_of_a_verifiable_kind_is_looked_up_first(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "", "sv");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_settle(s, &taken, OUTCOME_REJECTED, false);
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 nextAttemptAt 0", partition_of("ws", 2));
    sync_raw(s, "ZADD outboxws:{%u}:ws 0 ses", partition_of("ws", 2));
    sync_raw(s, "ZADD outboxdue:{%u} 0 ws", partition_of("ws", 2));
    taken = claim_one(TOKEN_A, "e1");
    assert_int_equal(taken.mode, CLAIM_VERIFY);
    assert_int_equal(taken.status, STATUS_PENDING);
    struct begin_send_answer begun = sync_begin_send(s, &taken);

    assert_true(begun.applied);
    assert_int_equal(begun.sends, 2);
    begun = sync_begin_send(s, &taken); /* repeated */
    assert_true(begun.applied);
    assert_int_equal(begun.sends, 2);
    assert_string_equal(sync_state(s, "ws", "e1"), "delivering");
    holds();
}

static void what_is_given_back_unsent_counts_no_send(void **state)
{
    (void)state;
    accept_in("ws", "ses", "e1", "", "sv");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_release(s, &taken));
    assert_false(sync_release(s, &taken));
    holds();
    taken = claim_one(TOKEN_B, "e1");
    assert_int_equal(taken.mode, CLAIM_SEND);
    assert_int_equal(taken.sends, 1);
}

static void a_lock_past_its_deadline_is_recovered_by_the_next_claim(void **state)
{
    const unsigned p = partition_of("ws", 2);

    (void)state;
    accept_in("ws", "ses", "e1", "", "sv");
    claim_one(TOKEN_A, "e1");
    sync_raw(s, "DEL outboxlock:{%u}:ws:ses", p);
    sync_raw(s, "ZADD outboxlive:{%u} 1 ws:ses", p);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 ses", p);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
    assert_int_equal(sync_held(s, "ws", "somebody else"), 1);
    struct taken taken = claim_one(TOKEN_B, "e1");

    assert_int_equal(taken.mode, CLAIM_VERIFY);
}

static void no_workspace_starves_another(void **state)
{
    char id[32], ses[32];
    bool has_other = false;

    (void)state;
    /* Two workspaces of one partition. */
    char other[32];
    unsigned n = 0;

    do {
        snprintf(other, sizeof(other), "other-%u", n++);
    } while (partition_of(other, strlen(other)) != partition_of("ws", 2));
    for (int i = 0; i < 40; i++) {
        snprintf(id, sizeof(id), "e%d", i);
        snprintf(ses, sizeof(ses), "s%d", i);
        sync_accept(s, "ws", ses, id, "", "d", "s", 25, NULL);
    }
    sync_accept(s, other, "ses", "single", "", "d", "s", 25, NULL);
    for (int round = 0; round < 2 && !has_other; round++) {
        char token[32];

        snprintf(token, sizeof(token), "node.1.4.a.%d", round);
        struct taken_list list = sync_claim(s, "ws", token, 4, 4, NULL, 0);

        holds();
        for (size_t i = 0; i < list.count; i++) {
            has_other |= strcmp(list.items[i].id, "single") == 0;
        }
    }
    assert_true(has_other);
}

static void a_quota_of_zero_skips_a_workspace_and_says_that_no_more_is_due(void **state)
{
    const struct claim_quota quota = {.workspace = span_of("ws"), .max = 0};

    (void)state;
    accept_in("ws", "ses", "e1", "", "s");
    struct taken_list list = sync_claim(s, "ws", TOKEN_A, 10, 10, &quota, 1);

    assert_int_equal(list.count, 0);
    assert_false(list.has_more);
    assert_int_equal(claim(TOKEN_A).count, 1);
}

static void an_entry_that_cannot_be_decoded_never_blocks_its_session(void **state)
{
    const unsigned p = partition_of("ws", 2);

    (void)state;
    accept_in("ws", "ses", "e1", "", "s");
    accept_in("ws", "ses", "e2", "", "s");
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 status nonsense body x acceptedAt y", p);
    struct taken_list list = sync_claim(s, "ws", TOKEN_A, 10, 10, NULL, 0);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, "e2");
}

static int begin(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    sync_limits.retry_backoff_ms = 1;
    sync_limits.max_backoff_ms = 4;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_repeated_client_message_id_gets_the_first_entry, begin),
        cmocka_unit_test_setup(the_same_client_message_id_with_another_body_is_refused, begin),
        cmocka_unit_test_setup(a_refused_message_leaves_no_marker, begin),
        cmocka_unit_test_setup(names_with_colons_and_percent_signs_never_collide, begin),
        cmocka_unit_test_setup(a_duplicate_of_an_ended_entry_says_how_it_ended, begin),
        cmocka_unit_test_setup(one_session_has_one_delivery_in_flight, begin),
        cmocka_unit_test_setup(finishing_takes_the_next_entry_under_the_same_lock, begin),
        cmocka_unit_test_setup(
            a_confirmation_from_an_earlier_claim_ends_the_entry_but_not_the_new_owners_lock, begin),
        cmocka_unit_test_setup(a_strict_entry_in_backoff_blocks_those_behind_it, begin),
        cmocka_unit_test_setup(a_first_due_entry_in_backoff_is_passed_over, begin),
        cmocka_unit_test_setup(an_error_entry_is_passed_over_and_can_be_retried_in_its_place,
                               begin),
        cmocka_unit_test_setup(a_retry_of_an_idempotent_kind_is_a_new_entry_at_the_end_of_its_lane,
                               begin),
        cmocka_unit_test_setup(a_removed_entry_is_gone_and_its_removal_may_be_repeated, begin),
        cmocka_unit_test_setup(recovery_of_a_kind_that_is_not_idempotent_verifies, begin),
        cmocka_unit_test_setup(recovery_of_an_idempotent_kind_sends_again, begin),
        cmocka_unit_test_setup(a_late_outcome_of_a_recovered_claim_changes_nothing, begin),
        cmocka_unit_test_setup(a_resend_of_a_verifiable_kind_is_looked_up_first, begin),
        cmocka_unit_test_setup(what_is_given_back_unsent_counts_no_send, begin),
        cmocka_unit_test_setup(a_lock_past_its_deadline_is_recovered_by_the_next_claim, begin),
        cmocka_unit_test_setup(no_workspace_starves_another, begin),
        cmocka_unit_test_setup(a_quota_of_zero_skips_a_workspace_and_says_that_no_more_is_due,
                               begin),
        cmocka_unit_test_setup(an_entry_that_cannot_be_decoded_never_blocks_its_session, begin),
    };
    struct valkey *server = valkey_start(NULL);

    s = sync_store_open(server->socket, LOCK_TTL, 60000);
    int failed = cmocka_run_group_tests_name("transitions", tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
