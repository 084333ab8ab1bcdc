/* Attacks on the transition scripts: lost answers, late callers, locks that end at any moment,
 * content that is garbage, a full store. One sentence per hole that must stay closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define TOKEN_A  "node.1.4.a.1"
#define TOKEN_B  "node.1.5.b.1"
#define LOCK_TTL 60000

static struct sync_store *s;
static unsigned p; /* the partition of "ws" */

static void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

static enum accept_result accept_in(const char *ses, const char *id, const char *cmid,
                                    const char *flags)
{
    return sync_accept(s, "ws", ses, id, cmid, "digest", flags, 20000, NULL);
}

static struct taken_list claim(const char *token)
{
    return sync_claim(s, "ws", token, 10, 10, NULL, 0);
}

static struct taken claim_one(const char *token, const char *expected_id)
{
    struct taken_list list = claim(token);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, expected_id);
    return list.items[0];
}

/* What a session whose lock ended looks like when its deadline has come. */
static void expire_lock(const char *ses)
{
    sync_raw(s, "DEL outboxlock:{%u}:ws:%s", p, ses);
    sync_raw(s, "ZADD outboxlive:{%u} 1 ws:%s", p, ses);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 %s", p, ses);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
}

static void make_due(const char *ses, const char *id)
{
    sync_raw(s, "HSET outboxe:{%u}:ws:%s nextAttemptAt 0", p, id);
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 %s", p, ses);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
}

static void park_by_hand(const char *id)
{
    const char *was = sync_state(s, "ws", id);

    sync_raw(s, "HINCRBY outboxstat:{%u} %s -1", p, was);
    sync_raw(s, "HINCRBY outboxstat:{%u} parked 1", p);
    sync_raw(s, "HINCRBY outboxwsstat:{%u}:ws %s -1", p, was);
    sync_raw(s, "HINCRBY outboxwsstat:{%u}:ws parked 1", p);
    sync_raw(s, "HSET outboxe:{%u}:ws:%s status parked priorStatus %s", p, id, was);
    sync_raw(s, "ZREM outboxopen:{%u} ws:%s", p, id);
}

static long long number_of(const char *text)
{
    return strtoll(text, NULL, 10);
}

static bool is_locked(const char *ses)
{
    return strcmp(sync_raw(s, "EXISTS outboxlock:{%u}:ws:%s", p, ses), "1") == 0;
}

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

/* ---- content that is garbage
 * --------------------------------------------------------------------- */

/* One command spoils session `bad`; session `good` must go on, and nobody must spin. */
static void spoil(const char *what, const char *rest)
{
    char key[64];

    sync_raw(s, "FLUSHALL");
    accept_in("bad", "b1", "", "s");
    accept_in("bad", "b2", "", "s");
    accept_in("good", "g1", "", "s");
    accept_in("good", "g2", "", "s");
    snprintf(key, sizeof(key), "%s:{%u}:%s", what, p, rest);
    sync_raw(s, "DEL %s", key);
    sync_raw(s, "SADD %s garbage", key);
    /* Before `good`: who claims meets it first. */
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 bad", p);
}

static void one_broken_session_never_holds_up_the_others(void **state)
{
    static const char *const keys[][2] = {{"outboxq", "ws:bad"},
                                          {"outboxd", "ws:bad"},
                                          {"outboxe", "ws:b1"},
                                          {"outboxlock", "ws:bad"}};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        spoil(keys[i][0], keys[i][1]);
        unsigned spins = 0;
        unsigned good = 0;
        struct taken_list list;

        do {
            char token[32];

            snprintf(token, sizeof(token), "node.1.4.a.%u", 100 + spins);
            list = sync_claim(s, "ws", token, 1, 1, NULL, 0);
            for (size_t c = 0; c < list.count; c++) {
                good += strcmp(list.items[c].session, "good") == 0;
            }
            spins++;
        } while (list.has_more && spins < 20);
        assert_true(spins < 20);
        assert_int_equal(good, 1);
        assert_true(list.next_due_ms != 0);
    }
}

static void one_broken_workspace_never_holds_up_the_others(void **state)
{
    static const char *const keys[] = {"outboxws", "outboxconf"};
    char other[32];
    unsigned n = 0;

    (void)state;
    do {
        snprintf(other, sizeof(other), "other-%u", n++);
    } while (partition_of(other, strlen(other)) != p);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char key[64];

        sync_raw(s, "FLUSHALL");
        accept_in("ses", "e1", "", "s");
        sync_accept(s, other, "ses", "o1", "", "d", "s", 25, NULL);
        snprintf(key, sizeof(key), "%s:{%u}:ws", keys[i], p);
        sync_raw(s, "DEL %s", key);
        sync_raw(s, "SADD %s garbage", key);
        sync_raw(s, "ZADD outboxdue:{%u} 1 ws", p);
        struct taken_list list = claim(TOKEN_A);

        assert_int_equal(list.count, 1);
        assert_string_equal(list.items[0].id, "o1");
        list = claim(TOKEN_B);
        assert_int_equal(list.count, 0);
        assert_false(list.has_more);
    }
}

static void a_broken_counter_never_stops_a_delivery(void **state)
{
    (void)state;
    accept_in("ses", "e1", "m1", "s");
    sync_raw(s, "HSET outboxstat:{%u} pending many delivering x", p);
    sync_raw(s, "DEL outboxwsstat:{%u}:ws", p);
    sync_raw(s, "SET outboxwsstat:{%u}:ws x", p);
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_finish(s, &taken, false).applied);
    assert_string_equal(sync_state(s, "ws", "e1"), "sent");
}

static void an_acceptance_time_that_is_no_number_never_stops_a_retry(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_settle(s, &taken, OUTCOME_FAILED, false);
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 acceptedAt y sends nan nextAttemptAt nan", p);
    assert_int_equal(sync_retry(s, "ws", "e1", "n", NULL), PERSON_DONE);
    taken = claim_one(TOKEN_A, "e1");
    assert_true(sync_finish(s, &taken, false).applied);
    holds();
}

static void a_next_attempt_that_is_no_number_is_due(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 nextAttemptAt nan", p);
    claim_one(TOKEN_A, "e1");
}

static void an_entry_without_status_can_be_removed(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    accept_in("ses", "e2", "", "s");
    sync_raw(s, "HDEL outboxe:{%u}:ws:e1 status", p);
    struct taken taken = claim_one(TOKEN_A, "e2");

    sync_finish(s, &taken, false);
    assert_int_equal(sync_remove(s, "ws", "e1", NULL), PERSON_DONE);
    assert_string_equal(sync_raw(s, "LLEN outboxq:{%u}:ws:ses", p), "0");
    assert_string_equal(sync_raw(s, "EXISTS outboxws:{%u}:ws", p), "0");
}

static void an_id_whose_entry_is_gone_leaves_its_queue(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    accept_in("ses", "e2", "", "s");
    sync_raw(s, "DEL outboxe:{%u}:ws:e1", p);
    struct taken taken = claim_one(TOKEN_A, "e2");

    sync_finish(s, &taken, false);
    assert_string_equal(sync_raw(s, "LLEN outboxq:{%u}:ws:ses", p), "0");
    assert_string_equal(sync_raw(s, "EXISTS outboxws:{%u}:ws", p), "0");
}

static void a_staged_id_whose_entry_is_gone_frees_its_session(void **state)
{
    (void)state;
    accept_in("ses", "e1", "", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_raw(s, "DEL outboxe:{%u}:ws:e1", p);
    assert_false(sync_finish(s, &taken, true).has_next);
    assert_false(is_locked("ses"));
}

static int got_tombstone;

static void on_get(enum store_result result, const struct get_answer *answer, void *arg)
{
    (void)arg;
    got_tombstone =
        result == STORE_OK && answer->tombstone && answer->tombstone->client_message_id.len == 3
            ? 1
            : -1;
}

static void a_zero_byte_in_a_client_message_id_hides_no_tombstone(void **state)
{
    (void)state;
    accept_in("ses", "e1", "m1", "s");
    sync_script(s, "#!lua flags=allow-cross-slot-keys\n"
                   "for _, k in ipairs(redis.call('KEYS', 'outboxe:*')) do\n"
                   "redis.call('HSET', k, 'clientMessageID', 'a\\0b') end return ''");
    struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(sync_finish(s, &taken, false).applied);
    got_tombstone = 0;
    store_get(s->store, span_of("ws"), span_of("e1"), on_get, NULL);
    while (got_tombstone == 0) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    assert_int_equal(got_tombstone, 1);
}

/* ---- what is left behind
 * ---------------------------------------------------------------------------- */

static void nothing_stays_for_ever_when_a_workspace_falls_silent(void **state)
{
    (void)state;
    accept_in("ses", "e1", "m1", "s");
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_finish(s, &taken, false);
    assert_string_equal(
        sync_script(s, "#!lua flags=no-writes,allow-cross-slot-keys\n"
                       "local left = ''\n"
                       "for _, k in ipairs(redis.call('KEYS', '*')) do\n"
                       "if redis.call('PTTL', k) == -1 and not k:find('^outboxev') and\n"
                       "not k:find('^outboxstat') then left = left .. k .. ' ' end end\n"
                       "return left"),
        "");
}

/* ---- a full store
 * -------------------------------------------------------------------------------------- */

static enum store_result simple_result;
static bool simple_yes, simple_done;

static void on_flag(enum store_result result, bool yes, void *arg)
{
    (void)arg;
    simple_result = result;
    simple_yes = yes;
    simple_done = true;
}

static void on_accept(enum store_result result, const struct accept_answer *answer, void *arg)
{
    (void)answer;
    (void)arg;
    simple_result = result;
    simple_done = true;
}

static void wait_simple(void)
{
    while (!simple_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    simple_done = false;
}

static void a_full_store_refuses_acceptance_and_drains(void **state)
{
    const struct entry_body body = {.kind = span_of("note")};
    const struct accept_request request = {.workspace = span_of("ws"),
                                           .session = span_of("new"),
                                           .id = span_of("e9"),
                                           .digest = span_of("d"),
                                           .flags = span_of("s"),
                                           .body = &body,
                                           .session_cap = 25};

    (void)state;
    accept_in("ses", "e1", "m1", "sv");
    accept_in("ses", "e2", "m2", "s");
    accept_in("err", "e3", "m3", "s");
    struct taken_list list = claim(TOKEN_A);

    assert_int_equal(list.count, 2);
    const unsigned err =
        strcmp(list.items[0].session, "err") == 0 ? 0 : 1; /* accepted in one ms: either first */

    sync_settle(s, &list.items[err], OUTCOME_FAILED, false);
    sync_settle(s, &list.items[1 - err], OUTCOME_REJECTED, false);
    make_due("ses", "e1");
    store_check_meta(s->store, on_flag, NULL);
    wait_simple();
    sync_raw(s, "CONFIG SET maxmemory 1");
    store_accept(s->store, &request, on_accept, NULL);
    wait_simple();
    assert_int_equal(simple_result, STORE_OOM);
    store_beat(s->store, "node", 1, on_flag, NULL);
    wait_simple();
    assert_int_equal(simple_result, STORE_OK);
    assert_true(simple_yes);
    store_check_meta(s->store, on_flag, NULL);
    wait_simple();
    assert_int_equal(simple_result, STORE_OK);
    assert_true(simple_yes);
    struct taken taken = claim_one(TOKEN_B, "e1");

    assert_true(sync_begin_send(s, &taken).applied);
    taken.sends = 2;
    struct outcome_copy outcome = sync_finish(s, &taken, true);

    assert_string_equal(outcome.next.id, "e2");
    assert_true(sync_held(s, "ws", "node.") > 0);
    sync_recover(s, "ws", "ses", TOKEN_B);
    assert_int_equal(sync_retry(s, "ws", "e3", "n", NULL), PERSON_DONE);
    assert_int_equal(sync_remove(s, "ws", "e3", NULL), PERSON_DONE);
    holds();
    sync_raw(s, "CONFIG SET maxmemory 0");
}

/* ---- cost
 * --------------------------------------------------------------------------------------------------
 */

static double milliseconds_of_claim(const char *token)
{
    uint64_t start = uv_hrtime();

    claim(token);
    return (double)(uv_hrtime() - start) / 1e6;
}

static void a_long_queue_costs_little(void **state)
{
    char id[32];
    unsigned looks;

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(id, sizeof(id), "e%u", i);
        accept_in("ses", id, "", "s");
    }
    sync_raw(s, "CONFIG RESETSTAT");
    print_message("first claim of a queue of 10000: %.2f ms\n", milliseconds_of_claim(TOKEN_A));
    looks = (unsigned)strtoul(
        sync_script(s, "#!lua flags=no-writes\nlocal t = redis.call('INFO', 'commandstats')\n"
                       "return t:match('cmdstat_hmget:calls=(%d+)') or '0'"),
        NULL, 10);
    assert_true(looks < 10);
    sync_recover(s, "ws", "ses", TOKEN_A);
    sync_script(s, "#!lua flags=allow-cross-slot-keys\n"
                   "for _, k in ipairs(redis.call('KEYS', 'outboxe:*')) do\n"
                   "if not k:find('e9999$') then redis.call('HSET', k, 'status', 'error') end end\n"
                   "return ''");
    sync_raw(s, "ZADD outboxws:{%u}:ws 1 ses", p);
    print_message("claim behind 9999 failed entries: %.2f ms\n", milliseconds_of_claim(TOKEN_B));
}

static void ten_thousand_locked_sessions_are_listed_in_one_go(void **state)
{
    char id[32];
    unsigned claimed = 0;

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(id, sizeof(id), "e%u", i);
        accept_in(id, id, "", "s");
    }
    for (unsigned i = 0; claimed < 10000 && i < 400; i++) {
        char token[32];

        snprintf(token, sizeof(token), "node.1.4.a.%u", i);
        claimed += (unsigned)sync_claim(s, "ws", token, 50, 50, NULL, 0).count;
    }
    assert_int_equal(claimed, 10000);
    struct taken_list list = claim(TOKEN_B);

    assert_int_equal(list.count, 0);
    assert_false(list.has_more);
    uint64_t start = uv_hrtime();

    assert_int_equal(sync_held(s, "ws", "node.1.5."), 0);
    print_message("held, 10000 locks, none of them ours: %.2f ms\n",
                  (double)(uv_hrtime() - start) / 1e6);
    assert_int_equal(sync_held(s, "ws", "node.1.4."), 10000);
}

static int begin(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    return 0;
}

static int end(void **state)
{
    (void)state;
    sync_raw(s, "CONFIG SET maxmemory 0"); /* also when the test failed half way */
    return 0;
}

#define ATTACK(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(a_repeated_acceptance_after_the_end_is_not_a_second_message),
        ATTACK(a_repeated_acceptance_answers_the_same_after_the_end),
        ATTACK(a_repeated_retry_answers_the_same_and_rearms_only_once),
        ATTACK(a_repeated_begin_of_a_send_extends_the_lock_again),
        ATTACK(a_repeated_finish_extends_the_lock_of_the_next_entry_again),
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
        ATTACK(one_broken_session_never_holds_up_the_others),
        ATTACK(one_broken_workspace_never_holds_up_the_others),
        ATTACK(a_broken_counter_never_stops_a_delivery),
        ATTACK(an_acceptance_time_that_is_no_number_never_stops_a_retry),
        ATTACK(a_next_attempt_that_is_no_number_is_due),
        ATTACK(an_entry_without_status_can_be_removed),
        ATTACK(an_id_whose_entry_is_gone_leaves_its_queue),
        ATTACK(a_staged_id_whose_entry_is_gone_frees_its_session),
        ATTACK(a_zero_byte_in_a_client_message_id_hides_no_tombstone),
        ATTACK(nothing_stays_for_ever_when_a_workspace_falls_silent),
        ATTACK(a_full_store_refuses_acceptance_and_drains),
        ATTACK(a_long_queue_costs_little),
        ATTACK(ten_thousand_locked_sessions_are_listed_in_one_go),
    };
    struct valkey *server = valkey_start(NULL);

    p = partition_of("ws", 2);
    s = sync_store_open(server->socket, LOCK_TTL, 60000);
    int failed = cmocka_run_group_tests_name("attacks", tests, NULL, NULL);

    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
