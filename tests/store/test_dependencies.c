/* Entries that wait for others, on a real server: what is given to them when, and what stands of
 * them after an operation on their workspace. Also stores that nobody of ours has written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/store/store_operate.h"
#include "tests/store/support/sync_store.h"
#include "tests/store/support/valkey_fixture.h"

#define TOKEN_A  "node.1.4.a.1"
#define TOKEN_B  "node.1.5.b.1"
#define LOCK_TTL 60000
#define AWAIT_MS 60000

static struct sync_store *s;
static struct sync_store *walker; /* on a loop of its own: goes on only when we let it */
static const char *flags = "s";
static uint32_t part;

/* ---- calls that can be waited for ---- */

struct told {
    bool is_done, yes;
};

static void wait_for(struct told *told)
{
    while (!told->is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
}

static void on_accepted(enum store_result result, const struct accept_answer *answer, void *arg)
{
    struct told *told = arg;

    assert_int_equal(result, STORE_OK);
    assert_int_equal(answer->result, ACCEPT_ACCEPTED);
    told->is_done = true;
}

/* A payload with a member to be filled, waiting for `dep` (NULL: for nobody). */
static void accept_waiting(const char *ses, const char *id, const char *dep)
{
    struct told told = {0};
    const struct entry_body body = {
        .kind = span_of("note"),
        .payload = span_of("{\"ref\":null}"),
        .depends_on = {span_of(dep ? dep : "")},
        .depends_on_count = dep ? 1 : 0,
    };
    const struct accept_request request = {
        .workspace = span_of("ws"),
        .session = span_of(ses),
        .id = span_of(id),
        .digest = span_of("d"),
        .flags = span_of(flags),
        .body = &body,
        .session_cap = 2000,
    };

    store_accept(s->store, &request, on_accepted, &told);
    wait_for(&told);
}

static void on_confirmed(enum store_result result, const struct confirm_answer *answer, void *arg)
{
    struct told *told = arg;

    assert_int_equal(result, STORE_OK);
    *told = (struct told){true, answer->is_new};
}

static bool echo(const char *id)
{
    struct told told = {0};
    const struct confirm_request request = {
        .workspace = span_of("ws"), .id = span_of(id), .wait_for_answer_ms = AWAIT_MS};

    store_confirm(s->store, &request, on_confirmed, &told);
    wait_for(&told);
    return told.yes;
}

static void on_outcome(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    struct told *told = arg;

    assert_int_equal(result, STORE_OK);
    *told = (struct told){true, answer->applied};
}

static bool finish_with(const struct taken *taken, const char *line)
{
    struct told told = {0};
    const struct claim_ref ref = {
        .workspace = span_of(taken->workspace),
        .session = span_of(taken->session),
        .id = span_of(taken->id),
        .token = taken->token,
        .sends = taken->sends,
        .status = taken->status,
    };

    store_finish(s->store, &ref, VIA_ANSWER, span_of(line), false, on_outcome, &told);
    wait_for(&told);
    return told.yes;
}

static struct taken claim_one(const char *token, const char *id)
{
    const struct taken_list list = sync_claim(s, "ws", token, 1, 1, NULL, 0);

    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, id);
    return list.items[0];
}

static void nothing_is_due(void)
{
    assert_int_equal(sync_claim(s, "ws", TOKEN_B, 10, 10, NULL, 0).count, 0);
}

static const char *field(const char *id, const char *name)
{
    return sync_raw(s, "HGET outboxe:{%u}:ws:%s %s", part, id, name);
}

static void holds(void)
{
    char why[512];

    if (!sync_invariants_hold(s, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

/* Keys of the workspace, but for streams and other partitions' indexes. */
static const char *keys_left(void)
{
    return sync_script(s, "#!lua flags=no-writes,allow-cross-slot-keys\n"
                          "local found = {}\n"
                          "for _, k in ipairs(redis.call('KEYS', '*')) do\n"
                          "  if k:match(':ws$') or k:match(':ws:') then found[#found + 1] = k end\n"
                          "end\n"
                          "return table.concat(found, ' ')");
}

static int begin(void **state)
{
    (void)state;
    sync_raw(s, "FLUSHALL");
    flags = "s";
    return 0;
}

/* ---- echoes ---- */

static void a_parked_one_gets_what_the_late_answer_tells(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    accept_waiting("b", "e2", "e1");
    const struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(echo("e1"));
    sync_walk(s, WALK_PARK, "ws", 0);
    assert_false(finish_with(&taken, "{\"ref\":\"r1\"}"));
    sync_walk(s, WALK_UNPARK, "ws", 0);
    claim_one(TOKEN_B, "e2");
    assert_string_equal(field("e2", "fills"), "{\"ref\":\"r1\"}");
    holds();
}

static void an_unparked_one_goes_on_waiting_for_the_late_answer(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    accept_waiting("b", "e2", "e1");
    const struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(echo("e1"));
    sync_walk(s, WALK_PARK, "ws", 0);
    sync_walk(s, WALK_UNPARK, "ws", 0);
    nothing_is_due();
    assert_false(finish_with(&taken, "{\"ref\":\"r1\"}"));
    claim_one(TOKEN_B, "e2");
    assert_string_equal(field("e2", "fills"), "{\"ref\":\"r1\"}");
    holds();
}

static void a_request_that_was_never_started_keeps_nobody_waiting(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    accept_waiting("b", "e2", "e1");
    const struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(echo("e1"));
    nothing_is_due();
    assert_false(sync_release(s, &taken));
    claim_one(TOKEN_B, "e2");
    holds();
}

static void an_echo_completes_a_parked_one_in_flight_and_one_that_is_looked_up(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    struct taken taken = claim_one(TOKEN_A, "e1");

    sync_walk(s, WALK_PARK, "ws", 0);
    assert_true(echo("e1"));
    assert_string_equal(sync_state(s, "ws", "e1"), "sent");
    holds();
    assert_false(finish_with(&taken, ""));
    accept_waiting("a", "e2", NULL);
    taken = claim_one(TOKEN_A, "e2");
    sync_recover(s, "ws", "a", TOKEN_A);
    taken = claim_one(TOKEN_B, "e2");
    assert_int_equal(taken.mode, CLAIM_VERIFY);
    assert_true(echo("e2"));
    assert_false(echo("e2"));
    assert_false(sync_begin_send(s, &taken).applied);
    assert_int_equal(sync_held(s, "ws", ""), 0);
    holds();
}

/* ---- stores that nobody of ours has written ---- */

static void those_that_wait_in_a_circle_can_be_removed(void **state)
{
    char what[32];

    (void)state;
    accept_waiting("a", "e1", NULL);
    accept_waiting("b", "e2", "e1");
    accept_waiting("c", "e3", NULL);
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 deps e2", part);
    sync_raw(s, "SADD outboxdep:{%u}:ws:e2 e1", part);
    sync_raw(s, "HSET outboxe:{%u}:ws:e3 deps e3", part);
    sync_raw(s, "SADD outboxdep:{%u}:ws:e3 e3", part);
    nothing_is_due();
    assert_int_equal(sync_remove(s, "ws", "e3", what), PERSON_DONE);
    assert_string_equal(what, "removed");
    assert_int_equal(sync_remove(s, "ws", "e1", what), PERSON_DONE);
    assert_string_equal(sync_state(s, "ws", "e2"), "error");
    assert_int_equal(sync_remove(s, "ws", "e2", what), PERSON_DONE);
    assert_string_equal(what, "discarded");
    holds();
}

static void tombstones_in_a_circle_and_what_is_no_tombstone_stand_for_nothing(void **state)
{
    (void)state;
    sync_raw(s, "SET outboxdone:{%u}:ws:x {\"how\":\"replaced\",\"replacedBy\":\"y\"}", part);
    sync_raw(s, "SET outboxdone:{%u}:ws:y {\"how\":\"replaced\",\"replacedBy\":\"x\"}", part);
    sync_raw(s, "RPUSH outboxdone:{%u}:ws:z x", part);
    sync_raw(s, "SET outboxdone:{%u}:ws:n {\"how\":7,\"replacedBy\":{}}", part);
    accept_waiting("a", "e1", "x");
    accept_waiting("b", "e2", "z");
    accept_waiting("c", "e3", "n");
    assert_string_equal(sync_state(s, "ws", "e1"), "error");
    assert_string_equal(sync_state(s, "ws", "e2"), "error");
    assert_string_equal(sync_state(s, "ws", "e3"), "error");
    assert_false(echo("z"));
    holds();
}

static void bars_in_what_an_entry_holds_do_not_make_it_busy(void **state)
{
    char what[32];

    (void)state;
    accept_waiting("a", "e1", NULL);
    sync_raw(s, "HSET outboxe:{%u}:ws:e1 root |1", part);
    assert_int_equal(sync_remove(s, "ws", "e1", what), PERSON_DONE);
    assert_string_equal(what, "removed");
    holds();
}

/* ---- many ---- */

/* Its acceptance is set as late as that of the replacement is at most, and as early: the clock
 * ticks when it likes between an acceptance, the plan of a retry, and its being carried out. */
static void a_replacement_goes_before_what_waits_for_it_whenever_that_was_accepted(void **state)
{
    static const int offsets_ms[] = {-3600000, 0, 3600000};
    char what[32];

    (void)state;
    flags = "si";
    for (size_t i = 0; i < sizeof(offsets_ms) / sizeof(offsets_ms[0]); i++) {
        sync_raw(s, "FLUSHALL");
        accept_waiting("a", "e1", NULL);
        const struct taken taken = claim_one(TOKEN_A, "e1");

        sync_settle(s, &taken, OUTCOME_FAILED, false);
        accept_waiting("a", "e2", "e1");
        const long long at = strtoll(field("e2", "acceptedAt"), NULL, 10);

        sync_raw(s, "HSET outboxe:{%u}:ws:e2 acceptedAt %lld", part, at + offsets_ms[i]);
        assert_int_equal(sync_retry(s, "ws", "e1", "e3", what), PERSON_DONE);
        assert_string_equal(what, "replaced");
        assert_string_equal(sync_raw(s, "LINDEX outboxq:{%u}:ws:a 0", part), "e3");
        (void)claim_one(TOKEN_B, "e3");
    }
}

static void a_thousand_that_wait_are_released_and_discarded_at_once(void **state)
{
    char what[32];

    (void)state;
    for (int round = 0; round < 2; round++) {
        begin(NULL);
        accept_waiting("a", "e", NULL);
        for (int i = 0; i < 998; i++) {
            char ses[16], id[16];

            snprintf(ses, sizeof(ses), "s%d", i);
            snprintf(id, sizeof(id), "w%d", i);
            accept_waiting(ses, id, "e");
        }
        const uint64_t start_ns = uv_hrtime();

        if (round == 0) {
            assert_true(echo("e"));
        } else {
            assert_int_equal(sync_remove(s, "ws", "e", what), PERSON_DONE);
        }
        print_message("%s: %u ms\n", round == 0 ? "released" : "discarded",
                      (unsigned)((uv_hrtime() - start_ns) / 1000000));
        assert_string_equal(sync_state(s, "ws", "w0"), round == 0 ? "pending" : "error");
        assert_string_equal(sync_state(s, "ws", "w997"), round == 0 ? "pending" : "error");
        holds();
    }
    assert_int_equal(sync_claim(s, "ws", TOKEN_A, 64, 64, NULL, 0).count, 0);
}

/* ---- cleanups ---- */

static void a_cleanup_leaves_nothing_of_those_that_wait(void **state)
{
    char what[32];

    (void)state;
    accept_waiting("a", "e1", NULL);
    accept_waiting("b", "e2", "e1");
    accept_waiting("a", "e3", "e2");
    const struct taken taken = claim_one(TOKEN_A, "e1");

    accept_waiting("c", "e4", NULL);
    accept_waiting("d", "e5", "e4");
    assert_int_equal(sync_remove(s, "ws", "e4", what), PERSON_DONE);
    assert_true(echo("e1"));
    assert_string_not_equal(keys_left(), "");
    sync_walk(s, WALK_CLEANUP, "ws", 1);
    assert_string_equal(keys_left(), "");
    assert_false(finish_with(&taken, "{\"ref\":1}"));
    assert_string_equal(keys_left(), "");
    holds();
}

static void what_stands_in_staging_only_is_cleaned_up_too(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    claim_one(TOKEN_A, "e1");
    sync_raw(s, "DEL outboxq:{%u}:ws:a", part);
    sync_walk(s, WALK_CLEANUP, "ws", 0);
    assert_string_equal(keys_left(), "");
    sync_audit(s, "ws");
    assert_string_equal(keys_left(), "");
    holds();
}

#define OLD_ONES 12

/* A cleanup's first steps: some of those that were there are gone, others are not. */
static void begin_cleanup(struct sync_walking *walking)
{
    flags = ""; /* once they are parked, those behind them may go */
    for (int i = 1; i <= OLD_ONES; i++) {
        char id[16];

        snprintf(id, sizeof(id), "old%d", i);
        accept_waiting("a", id, NULL);
    }
    sync_walk(s, WALK_PARK, "ws", 0);
    sync_walk_begin(walker, WALK_CLEANUP, "ws", 1, walking);
    while (strcmp(sync_state(s, "ws", "old1"), "none") != 0) {
        uv_run(walker->loop, UV_RUN_ONCE);
    }
    usleep(2000); /* what is accepted now is accepted later */
}

static void a_cleanup_keeps_the_lock_of_what_was_accepted_since(void **state)
{
    struct sync_walking walking;

    (void)state;
    begin_cleanup(&walking);
    /* Another cleanup has ended meanwhile: nothing is held back. */
    sync_raw(s, "DEL outboxconf:{%u}:ws", part);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", part);
    accept_waiting("a", "e1", NULL);
    const struct taken taken = claim_one(TOKEN_A, "e1");

    assert_false(walking.is_done);
    sync_walk_end(walker, &walking);
    assert_int_equal(sync_held(s, "ws", TOKEN_A), 1);
    assert_string_equal(sync_state(s, "ws", "e1"), "delivering");
    assert_string_equal(sync_state(s, "ws", "old12"), "none");
    nothing_is_due();
    assert_true(finish_with(&taken, ""));
    assert_int_equal(sync_held(s, "ws", ""), 0);
    holds();
}

static void what_stays_finds_out_that_what_it_waits_for_was_cleaned_up(void **state)
{
    struct sync_walking walking;

    (void)state;
    begin_cleanup(&walking);
    accept_waiting("b", "e1", "old12");
    accept_waiting("c", "e2", "e1");
    assert_string_equal(sync_state(s, "ws", "e1"), "pending");
    assert_false(walking.is_done);
    sync_walk_end(walker, &walking);
    assert_int_equal(sync_claim(s, "ws", TOKEN_A, 10, 10, NULL, 0).count, 0);
    assert_string_equal(sync_state(s, "ws", "e1"), "error");
    assert_string_equal(sync_state(s, "ws", "e2"), "error");
    holds();
}

static void a_cleanup_that_was_cut_holds_nothing_back_for_ever(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    /* As it stands behind the first step of one, and a minute later. */
    sync_raw(s, "HSET outboxconf:{%u}:ws cleanup %llu", part,
             ((unsigned long long)time(NULL) + 60) * 1000);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", part);
    nothing_is_due();
    assert_string_not_equal(sync_raw(s, "ZSCORE outboxdue:{%u} ws", part), "inf");
    sync_raw(s, "HSET outboxconf:{%u}:ws cleanup 1", part);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", part);
    const struct taken taken = claim_one(TOKEN_A, "e1");

    assert_true(finish_with(&taken, ""));
    assert_string_equal(sync_raw(s, "EXISTS outboxconf:{%u}:ws", part), "0");
    holds();
}

/* Nothing of the workspace is left but what the cleanup itself has noted. */
static void a_cleanup_that_was_cut_before_its_end_leaves_no_name(void **state)
{
    (void)state;
    accept_waiting("a", "e1", NULL);
    sync_raw(s, "DEL outboxq:{%u}:ws:a outboxe:{%u}:ws:e1 outboxws:{%u}:ws outboxwsstat:{%u}:ws",
             part, part, part, part);
    sync_raw(s, "DEL outboxopen:{%u} outboxstat:{%u}", part, part);
    sync_raw(s, "HSET outboxconf:{%u}:ws cleanup 1", part);
    sync_raw(s, "ZADD outboxdue:{%u} 1 ws", part);
    nothing_is_due();
    assert_string_equal(keys_left(), "");
    assert_string_equal(sync_raw(s, "ZSCORE outboxnames:{%u} ws", part), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_parked_one_gets_what_the_late_answer_tells, begin),
        cmocka_unit_test_setup(an_unparked_one_goes_on_waiting_for_the_late_answer, begin),
        cmocka_unit_test_setup(a_request_that_was_never_started_keeps_nobody_waiting, begin),
        cmocka_unit_test_setup(an_echo_completes_a_parked_one_in_flight_and_one_that_is_looked_up,
                               begin),
        cmocka_unit_test_setup(those_that_wait_in_a_circle_can_be_removed, begin),
        cmocka_unit_test_setup(tombstones_in_a_circle_and_what_is_no_tombstone_stand_for_nothing,
                               begin),
        cmocka_unit_test_setup(bars_in_what_an_entry_holds_do_not_make_it_busy, begin),
        cmocka_unit_test_setup(
            a_replacement_goes_before_what_waits_for_it_whenever_that_was_accepted, begin),
        cmocka_unit_test_setup(a_thousand_that_wait_are_released_and_discarded_at_once, begin),
        cmocka_unit_test_setup(a_cleanup_leaves_nothing_of_those_that_wait, begin),
        cmocka_unit_test_setup(what_stands_in_staging_only_is_cleaned_up_too, begin),
        cmocka_unit_test_setup(a_cleanup_keeps_the_lock_of_what_was_accepted_since, begin),
        cmocka_unit_test_setup(what_stays_finds_out_that_what_it_waits_for_was_cleaned_up, begin),
        cmocka_unit_test_setup(a_cleanup_that_was_cut_holds_nothing_back_for_ever, begin),
        cmocka_unit_test_setup(a_cleanup_that_was_cut_before_its_end_leaves_no_name, begin),
    };
    struct valkey *server = valkey_start(NULL);

    part = partition_of("ws", 2);
    s = sync_store_open(server->socket, LOCK_TTL, 60000);
    walker = sync_store_open(server->socket, LOCK_TTL, 60000);
    const int failed = cmocka_run_group_tests_name("dependencies", tests, NULL, NULL);

    sync_store_close(walker);
    sync_store_close(s);
    valkey_stop(&server);
    return failed;
}
