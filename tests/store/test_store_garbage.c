/* What the transition scripts make of content that is garbage, of a full store and of a long one;
 * and what they leave behind. One sentence per hole that must stay closed. */
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
                                          {"outboxlock", "ws:bad"},
                                          {"outboxowned", "ws:bad"}};

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

static void a_key_of_another_type_is_no_entry_that_anybody_waits_for(void **state)
{
    (void)state;
    accept_in("ses", "e1", "m1", "s");
    accept_in("ses", "e2", "m2", "s");
    sync_raw(s, "DEL outboxe:{%u}:ws:e1", p);
    sync_raw(s, "RPUSH outboxe:{%u}:ws:e1 garbage", p);
    assert_true(sync_audit(s, "ws") > 0);
    assert_string_equal(
        sync_script(s,
                    "#!lua flags=no-writes,allow-cross-slot-keys\n"
                    "local told = 0\n"
                    "for _, k in ipairs(redis.call('KEYS', 'outboxev:*')) do\n"
                    "for _, row in ipairs(redis.call('XRANGE', k, '-', '+')) do\n"
                    "if table.concat(row[2], ' '):find('e1.*unreadable') then told = told + 1 end\n"
                    "end end return tostring(told)"),
        "1");
    struct taken taken = claim_one(TOKEN_A, "e2");

    assert_true(sync_finish(s, &taken, false).applied);
    assert_int_equal(accept_in("ses", "e3", "m1", "s"), ACCEPT_ACCEPTED);
    assert_int_equal(sync_remove(s, "ws", "e1", NULL), PERSON_DONE);
    assert_string_equal(sync_raw(s, "EXISTS outboxe:{%u}:ws:e1", p), "0");
    claim_one(TOKEN_B, "e3");
    assert_string_equal(sync_raw(s, "LLEN outboxq:{%u}:ws:ses", p), "1");
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

static char simple_flags[8];

static void on_flags(enum store_result result, struct span flags, void *arg)
{
    (void)arg;
    (void)span_text(flags, simple_flags, sizeof(simple_flags));
    simple_result = result;
    simple_done = true;
}

/* What a supervisor takes back when it starts: it must not wait for what can't be read. */
static void one_broken_session_never_holds_up_what_is_taken_back(void **state)
{
    static const char *const broken[] = {"outboxq", "outboxowned"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buf list;

        sync_raw(s, "FLUSHALL");
        accept_in("bad", "b1", "", "s");
        accept_in("good", "g1", "", "s");
        assert_int_equal(sync_claim(s, "ws", TOKEN_A, 10, 10, NULL, 0).count, 2);
        sync_raw(s, "DEL %s:{%u}:ws:bad", broken[i], p);
        sync_raw(s, "SET %s:{%u}:ws:bad garbage", broken[i], p);
        buf_init(&list, 1024);
        store_recover_list(&list, span_of("ws"), span_of("bad"), span_of(TOKEN_A));
        store_recover_list(&list, span_of("ws"), span_of("good"), span_of(TOKEN_A));
        store_recover(s->store, p, (struct span){list.bytes, list.len}, on_flags, NULL);
        wait_simple();
        buf_done(&list);
        assert_int_equal(simple_result, STORE_OK);
        assert_string_equal(simple_flags, "01");
        assert_int_equal(sync_held(s, "ws", "node."), 0);
        struct taken_list claimed = claim(TOKEN_B);

        assert_int_equal(claimed.count, 1); /* the other one is looked at in a minute */
        assert_string_equal(claimed.items[0].id, "g1");
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(one_broken_session_never_holds_up_the_others),
        ATTACK(one_broken_workspace_never_holds_up_the_others),
        ATTACK(a_broken_counter_never_stops_a_delivery),
        ATTACK(an_acceptance_time_that_is_no_number_never_stops_a_retry),
        ATTACK(a_next_attempt_that_is_no_number_is_due),
        ATTACK(an_entry_without_status_can_be_removed),
        ATTACK(a_key_of_another_type_is_no_entry_that_anybody_waits_for),
        ATTACK(an_id_whose_entry_is_gone_leaves_its_queue),
        ATTACK(a_staged_id_whose_entry_is_gone_frees_its_session),
        ATTACK(a_zero_byte_in_a_client_message_id_hides_no_tombstone),
        ATTACK(nothing_stays_for_ever_when_a_workspace_falls_silent),
        ATTACK(one_broken_session_never_holds_up_what_is_taken_back),
        ATTACK(a_full_store_refuses_acceptance_and_drains),
        ATTACK(a_long_queue_costs_little),
        ATTACK(ten_thousand_locked_sessions_are_listed_in_one_go),
    };

    return attacks_run("garbage", tests, sizeof(tests) / sizeof(tests[0]));
}
