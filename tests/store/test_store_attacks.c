/* Attacks on the transition scripts: lost answers, late callers, locks that end at any moment. One
 * sentence per hole that must stay closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/store/support/attack_scene.h"

/* ---- answers lost, calls repeated ------------------------------------------------------------ */

static void a_repeated_acceptance_after_the_end_is_not_a_second_message(void **state)
{
    char id[64];

    (void)state;
    assert_int_equal(accept_in("ses", "e1", "", "s"), ACCEPT_ACCEPTED);
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_finish(s, &taken, false).applied);
    assert_int_equal(sync_accept(s, "ws", "ses", "e1", "", "digest", "s", 25, id), ACCEPT_ACCEPTED);
    assert_string_equal(id, "e1");
    assert_int_equal(claim(TOKEN_B).count, 0);
    assert_string_equal(sync_state(s, "ws", "e1"), "sent");
    holds();
}

static void a_repeated_acceptance_answers_the_same_after_the_end(void **state)
{
    char id[64];

    (void)state;
    accept_in("ses", "e1", "m1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_finish(s, &taken, false);
    assert_int_equal(sync_accept(s, "ws", "ses", "e1", "m1", "digest", "s", 25, id),
                     ACCEPT_ACCEPTED);
    assert_string_equal(id, "e1");
    assert_int_equal(sync_accept(s, "ws", "ses", "e2", "m1", "digest", "s", 25, id),
                     ACCEPT_DUPLICATE);
    assert_string_equal(id, "e1");
}

static void a_repeated_retry_answers_the_same_and_rearms_only_once(void **state)
{
    char what[32];

    (void)state;
    accept_in("ses", "e1", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_settle(s, &taken, OUTCOME_FAILED, false);
    assert_int_equal(sync_retry(s, "ws", "e1", "r1", what), PERSON_DONE);
    assert_int_equal(sync_retry(s, "ws", "e1", "r1", what), PERSON_DONE);
    assert_string_equal(what, "retried");
    taken = claim_one(TOKEN_A, "e1");
    assert_int_equal(sync_retry(s, "ws", "e1", "r1", what), PERSON_DONE);
    assert_int_equal(sync_retry(s, "ws", "e1", "r2", what), PERSON_BUSY);
    sync_settle(s, &taken, OUTCOME_FAILED, false);
    assert_int_equal(sync_retry(s, "ws", "e1", "r1", what), PERSON_DONE);
    assert_string_equal(sync_state(s, "ws", "e1"), "error");
    assert_int_equal(sync_retry(s, "ws", "e1", "r2", what), PERSON_DONE);
    assert_string_equal(sync_state(s, "ws", "e1"), "pending");
    holds();
}

static void a_repeated_begin_of_a_send_extends_the_lock_again(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "sv");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_settle(s, &taken, OUTCOME_REJECTED, false);
    make_due("ses", "e1");
    taken = claim_one(TOKEN_A, "e1");
    assert_true(sync_begin_send(s, &taken).applied);
    sync_raw(s, "PEXPIRE outboxlock:{%u}:ws:ses 1000", p);
    assert_true(sync_begin_send(s, &taken).applied);
    assert_true(number_of(sync_raw(s, "PTTL outboxlock:{%u}:ws:ses", p)) > 10000);
    holds();
}

static void a_repeated_finish_extends_the_lock_of_the_next_entry_again(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    accept_in("ses", "e2", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_finish(s, &taken, true).has_next);
    sync_raw(s, "PEXPIRE outboxlock:{%u}:ws:ses 1000", p);
    assert_true(sync_finish(s, &taken, true).has_next);
    assert_true(number_of(sync_raw(s, "PTTL outboxlock:{%u}:ws:ses", p)) > 10000);
    holds();
}

static void a_replacement_that_lost_its_place_gets_back_before_what_it_stands_before(void **state)
{
    (void)state;
    accept_in("s", "a", "", "s");
    accept_in("s", "b", "", "s");
    sync_raw(s, "HSET outboxe:{%u}:ws:b rank 1", p); /* it stands in for an older one */
    sync_raw(s, "LREM outboxq:{%u}:ws:s 0 b", p);
    assert_true(sync_audit(s, "ws") > 0);
    assert_string_equal(sync_raw(s, "LINDEX outboxq:{%u}:ws:s 0", p), "b");
}

/* The store's clock may stand still, or step back (here: what waits was accepted an hour from now).
 */
static void a_replacement_stands_before_what_waits_for_it_whatever_the_clock_says(void **state)
{
    (void)state;
    for (long long later = 0; later <= 3600000; later += 3600000) {
        sync_raw(s, "FLUSHALL");
        accept_in("s", "a", "", "si");
        accept_in("s", "b", "", "si");
        sync_raw(s, "HSET outboxe:{%u}:ws:b deps a", p);
        sync_raw(s, "SADD outboxdep:{%u}:ws:a b", p);
        struct taken taken = claim_one(TOKEN_A, "a");

        sync_settle(s, &taken, OUTCOME_FAILED, false);
        const long long now = number_of(sync_script(s, "return redis.call('TIME')[1] .. '000'"));

        sync_raw(s, "HSET outboxe:{%u}:ws:b acceptedAt %lld", p, now + 60000 + later);
        sync_raw(s, "ZADD outboxopen:{%u} %lld ws:b", p, now + 60000 + later);
        assert_int_equal(sync_retry(s, "ws", "a", "r", NULL), PERSON_DONE);
        assert_string_equal(sync_raw(s, "LINDEX outboxq:{%u}:ws:s 0", p), "r");
        claim_one(TOKEN_A, "r");
        holds();
    }
}

/* b overtook a, which waited; the target still owns b's attempt when a's time has come. */
static void what_was_overtaken_waits_while_the_target_owns_the_other(void **state)
{
    (void)state;
    accept_in("s", "a", "", "");
    accept_in("s", "b", "", "v");
    struct taken first = claim_one(TOKEN_A, "a");

    sync_settle(s, &first, OUTCOME_REJECTED, false);
    sync_raw(s, "HSET outboxe:{%u}:ws:a nextAttemptAt 9999999999999", p);
    make_due("s", "b");
    struct taken second = claim_one(TOKEN_A, "b");

    sync_settle(s, &second, OUTCOME_PRIOR_PENDING, false);
    sync_raw(s, "HSET outboxe:{%u}:ws:b nextAttemptAt 9999999999999", p);
    make_due("s", "a");
    assert_int_equal(claim(TOKEN_B).count, 0);
    holds();
    make_due("s", "b");
    second = claim_one(TOKEN_B, "b");
    assert_int_equal(second.mode, CLAIM_POLL);
    assert_true(sync_finish(s, &second, false).applied);
    claim_one(TOKEN_B, "a");
    assert_string_equal(sync_raw(s, "EXISTS outboxowned:{%u}:ws:s", p), "0");
    holds();
}

/* The session that stands waits for ever, so does its workspace; a new one begins. */
static void what_is_accepted_while_a_cleanup_holds_back_is_due_when_that_ends(void **state)
{
    (void)state;
    accept_in("s", "a", "", "s");
    sync_walk(s, WALK_PARK, "ws", 0);
    sync_raw(s, "HSET outboxconf:{%u}:ws cleanup 9999999999998", p);
    accept_in("t", "b", "", "s");
    assert_string_equal(sync_raw(s, "ZSCORE outboxdue:{%u} ws", p), "9999999999998");
    holds();
    sync_pause(s, "ws", true);
    sync_raw(s, "ZADD outboxdue:{%u} 9999999999998 ws", p); /* as a cleanup's last step leaves it */
    accept_in("u", "c", "", "s");
    holds();
}

/* ---- late callers ---------------------------------------------------------------------------- */

static void a_late_release_of_an_earlier_entry_leaves_the_next_one_in_flight(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    accept_in("ses", "e2", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");
    struct outcome_copy outcome = sync_finish(s, &taken, true);

    assert_string_equal(outcome.next.id, "e2");
    assert_false(sync_release(s, &taken));
    assert_true(is_locked("ses"));
    assert_int_equal(claim(TOKEN_B).count, 0);
    assert_true(sync_settle(s, &outcome.next, OUTCOME_REJECTED, false).applied);
    holds();
}

static void a_release_that_names_an_older_send_never_gives_back_what_is_being_sent(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "sv");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_settle(s, &taken, OUTCOME_REJECTED, false);
    make_due("ses", "e1");
    taken = claim_one(TOKEN_A, "e1");
    assert_true(sync_begin_send(s, &taken).applied);
    assert_false(sync_release(s, &taken)); /* sends = 1: that look-up has become a send */
    assert_true(is_locked("ses"));
    assert_string_equal(sync_state(s, "ws", "e1"), "delivering");
    holds();
}

static void a_late_repeat_of_an_attempt_that_never_began_takes_back_no_later_send(void **state)
{
    (void)state;
    accept_in("s", "a", "", "v");
    accept_in("s", "b", "", "v");
    struct taken first = claim_one(TOKEN_A, "a");

    struct outcome_copy outcome = sync_settle(s, &first, OUTCOME_TRANSIENT, true);
    assert_true(outcome.applied);
    assert_false(
        outcome.has_next); /* b under the same token, and behind it a again as its send 1 */
    make_due("s", "a");
    struct taken second = claim_one(TOKEN_B, "a");
    assert_int_equal(second.sends, first.sends);
    assert_false(sync_settle(s, &first, OUTCOME_TRANSIENT, true).applied);
    assert_string_equal(sync_state(s, "ws", "a"), "delivering");
    holds();
}

static void a_look_up_whose_entry_ended_elsewhere_frees_its_session(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "sv");
    accept_in("ses", "e2", "", "sv");
    struct taken old = claim_one(TOKEN_A, "e1");

    assert_true(sync_recover(s, "ws", "ses", TOKEN_A));
    struct taken fresh = claim_one(TOKEN_B, "e1");

    assert_int_equal(fresh.mode, CLAIM_VERIFY);
    assert_true(sync_finish(s, &old, false).applied);
    assert_false(sync_begin_send(s, &fresh).applied); /* the worker drops the claim */
    assert_false(is_locked("ses"));
    claim_one(TOKEN_A, "e2");
    holds();
}

static void a_look_up_whose_entry_was_parked_frees_its_session(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "v");
    accept_in("ses", "e2", "", "v");
    claim_one(TOKEN_A, "e1");
    sync_recover(s, "ws", "ses", TOKEN_A);
    struct taken fresh = claim_one(TOKEN_B, "e1");

    park_by_hand("e1");
    assert_false(sync_begin_send(s, &fresh).applied);
    assert_false(is_locked("ses"));
    claim_one(TOKEN_A, "e2");
    assert_string_equal(sync_state(s, "ws", "e1"), "parked");
    holds();
}

static void a_repeated_finish_never_hands_out_an_entry_that_was_parked_since(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "");
    accept_in("ses", "e2", "", "");
    accept_in("ses", "e3", "", "");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_string_equal(sync_finish(s, &taken, true).next.id, "e2");
    park_by_hand("e2");
    struct outcome_copy outcome = sync_finish(s, &taken, true);

    assert_true(outcome.has_next);
    assert_string_equal(outcome.next.id, "e3");
    assert_string_equal(sync_state(s, "ws", "e2"), "parked");
    holds();
}

static void a_parked_entry_in_flight_is_verified_once_unparked_after_a_crash(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "sv");
    claim_one(TOKEN_A, "e1");
    park_by_hand("e1");
    assert_true(sync_recover(s, "ws", "ses", TOKEN_A));
    assert_string_equal(sync_state(s, "ws", "e1"), "parked");
    assert_string_equal(sync_raw(s, "HGET outboxe:{%u}:ws:e1 priorStatus", p), "verifying");
    holds();
}

/* ---- locks that end at any moment ---------------------------------------------------------------
 */

static void whatever_follows_a_lock_that_ended_the_entry_is_sent_once(void **state)
{
    (void)state;
    for (int follow = 0; follow < 6; follow++) {
        sync_raw(s, "FLUSHALL");
        accept_in("ses", "e1", "m1", "sv");
        accept_in("ses", "e2", "m2", "sv");
        struct taken old = claim_one(TOKEN_A, "e1");

        expire_lock("ses");
        switch (follow) {
        case 0:
            assert_true(sync_finish(s, &old, true).applied);
            break;
        case 1:
            assert_false(sync_settle(s, &old, OUTCOME_REJECTED, true).applied);
            break;
        case 2:
            assert_false(sync_release(s, &old));
            break;
        case 3:
            assert_false(sync_begin_send(s, &old).applied);
            break;
        case 4:
            assert_true(sync_recover(s, "ws", "ses", TOKEN_A));
            break;
        default:
            assert_int_equal(sync_remove(s, "ws", "e1", NULL), PERSON_BUSY);
            break;
        }
        holds();
        struct taken fresh = claim_one(TOKEN_B, follow == 0 ? "e2" : "e1");

        assert_int_equal(fresh.mode, follow == 0 ? CLAIM_SEND : CLAIM_VERIFY);
        assert_int_equal(sync_finish(s, &old, true).applied, follow != 0);
        sync_finish(s, &fresh, false);
        assert_string_equal(sync_state(s, "ws", "e1"), "sent");
        holds();
    }
}

static void a_lock_without_an_end_is_given_one_and_never_keeps_workers_busy(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    claim_one(TOKEN_A, "e1");
    sync_raw(s, "PERSIST outboxlock:{%u}:ws:ses", p);
    sync_raw(s, "ZADD outboxlive:{%u} 1 ws:ses", p);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 ses", p);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
    struct taken_list list = claim(TOKEN_B);

    assert_int_equal(list.count, 0);
    assert_false(list.has_more);
    assert_true(list.next_due_ms > 0);
    assert_true(number_of(sync_raw(s, "PTTL outboxlock:{%u}:ws:ses", p)) > 0);
    holds();
}

static void a_lost_staging_list_does_not_turn_a_send_into_a_poll(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "sv");
    claim_one(TOKEN_A, "e1");
    sync_raw(s, "DEL outboxd:{%u}:ws:ses", p);
    expire_lock("ses");
    assert_int_equal(claim_one(TOKEN_B, "e1").mode, CLAIM_VERIFY);
    holds();
}

static void a_paused_workspace_is_not_claimed_even_where_its_score_says_due(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    sync_raw(s, "HSET outboxconf:{%u}:ws paused 1", p);
    struct taken_list list = claim(TOKEN_A);

    assert_int_equal(list.count, 0);
    assert_false(list.has_more);
    assert_true(list.next_due_ms < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(a_repeated_acceptance_after_the_end_is_not_a_second_message),
        ATTACK(a_repeated_acceptance_answers_the_same_after_the_end),
        ATTACK(a_repeated_retry_answers_the_same_and_rearms_only_once),
        ATTACK(a_repeated_begin_of_a_send_extends_the_lock_again),
        ATTACK(a_repeated_finish_extends_the_lock_of_the_next_entry_again),
        ATTACK(a_replacement_that_lost_its_place_gets_back_before_what_it_stands_before),
        ATTACK(a_replacement_stands_before_what_waits_for_it_whatever_the_clock_says),
        ATTACK(what_was_overtaken_waits_while_the_target_owns_the_other),
        ATTACK(what_is_accepted_while_a_cleanup_holds_back_is_due_when_that_ends),
        ATTACK(a_late_repeat_of_an_attempt_that_never_began_takes_back_no_later_send),
        ATTACK(a_late_release_of_an_earlier_entry_leaves_the_next_one_in_flight),
        ATTACK(a_release_that_names_an_older_send_never_gives_back_what_is_being_sent),
        ATTACK(a_look_up_whose_entry_ended_elsewhere_frees_its_session),
        ATTACK(a_look_up_whose_entry_was_parked_frees_its_session),
        ATTACK(a_repeated_finish_never_hands_out_an_entry_that_was_parked_since),
        ATTACK(a_parked_entry_in_flight_is_verified_once_unparked_after_a_crash),
        ATTACK(whatever_follows_a_lock_that_ended_the_entry_is_sent_once),
        ATTACK(a_lock_without_an_end_is_given_one_and_never_keeps_workers_busy),
        ATTACK(a_lost_staging_list_does_not_turn_a_send_into_a_poll),
        ATTACK(a_paused_workspace_is_not_claimed_even_where_its_score_says_due),
    };

    return attacks_run("attacks", tests, sizeof(tests) / sizeof(tests[0]));
}
