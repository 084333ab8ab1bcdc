/* The circuit of a target: every state with every event, and what must hold whatever happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/core/circuit.h"

#define DELAY  INT64_C(1000)
#define MAX    INT64_C(8000)
#define FAILS  3U
#define START  INT64_C(100000)
#define ROUNDS 200000

static const struct circuit_limits limits = {.failures = FAILS, .delay_ms = DELAY, .max_ms = MAX};

static struct circuit_step ask(struct circuit *circuit, int64_t now)
{
    const struct circuit_input input = {.what = CIRCUIT_WAS_ASKED, .now_ms = now};
    const struct circuit_step step = circuit_step(circuit, &input, &limits);

    *circuit = step.next;
    return step;
}

static void answered(struct circuit *circuit, int64_t now)
{
    const struct circuit_input input = {
        .what = CIRCUIT_HAS_ANSWERED, .now_ms = now, .began_ms = now - 1};

    *circuit = circuit_step(circuit, &input, &limits).next;
}

static void failed_since(struct circuit *circuit, int64_t began, int64_t now)
{
    const struct circuit_input input = {
        .what = CIRCUIT_HAS_FAILED, .now_ms = now, .began_ms = began};

    *circuit = circuit_step(circuit, &input, &limits).next;
}

static void failed(struct circuit *circuit, int64_t now)
{
    failed_since(circuit, now, now);
}

static void failed_by_its_message(struct circuit *circuit, uint8_t mark, int64_t now)
{
    const struct circuit_input input = {.what = CIRCUIT_HAS_FAILED,
                                        .now_ms = now,
                                        .began_ms = now,
                                        .mark = mark,
                                        .may_be_own_fault = true};

    *circuit = circuit_step(circuit, &input, &limits).next;
}

/* One that is in a state by the ways that lead there. */
static struct circuit in_state(enum circuit_state state)
{
    struct circuit circuit = {0};

    if (state == CIRCUIT_CLOSED) {
        return circuit;
    }
    for (unsigned i = 0; i < FAILS; i++) {
        failed(&circuit, START);
    }
    if (state == CIRCUIT_HALF_OPEN) {
        assert_true(ask(&circuit, START + DELAY).may_go);
    }
    assert_int_equal(circuit.state, state);
    return circuit;
}

static void every_event_leads_from_every_state_to_where_a_reader_expects_it(void **state)
{
    /* By time of asking, answers and failures; what the tables of the other tests build on. */
    static const enum circuit_state after_answer = CIRCUIT_CLOSED;
    const struct {
        enum circuit_state from, early, in_time, failure;
        bool goes_early;
    } rows[CIRCUIT_STATE_COUNT] = {
        {CIRCUIT_CLOSED, CIRCUIT_CLOSED, CIRCUIT_CLOSED, CIRCUIT_CLOSED, true},
        {CIRCUIT_OPEN, CIRCUIT_OPEN, CIRCUIT_HALF_OPEN, CIRCUIT_OPEN, false},
        {CIRCUIT_HALF_OPEN, CIRCUIT_HALF_OPEN, CIRCUIT_HALF_OPEN, CIRCUIT_OPEN, false},
    };

    (void)state;
    for (size_t i = 0; i < CIRCUIT_STATE_COUNT; i++) {
        const struct circuit from = in_state(rows[i].from);
        struct circuit circuit = from;
        const int64_t time = from.state == CIRCUIT_CLOSED ? START : from.at_ms;

        assert_int_equal(ask(&circuit, time - 1).may_go, rows[i].goes_early);
        assert_int_equal(circuit.state, rows[i].early);
        circuit = from;
        assert_true(ask(&circuit, time).may_go);
        assert_int_equal(circuit.state, rows[i].in_time);
        circuit = from;
        answered(&circuit, time - 1);
        assert_int_equal(circuit.state, after_answer);
        assert_int_equal(circuit.failures, 0);
        circuit = from;
        failed(&circuit, time - 1);
        assert_int_equal(circuit.state, rows[i].failure);
        circuit = from;
        failed_since(&circuit, START - 50000, time - 1);
        assert_int_equal(circuit.state, from.state == CIRCUIT_CLOSED ? CIRCUIT_CLOSED : from.state);
    }
}

static void it_opens_after_so_many_failures_in_a_row_and_not_before(void **state)
{
    struct circuit circuit = {0};

    (void)state;
    for (int round = 0; round < 10; round++) {
        for (unsigned i = 0; i < FAILS - 1; i++) {
            failed(&circuit, START);
            assert_int_equal(circuit.state, CIRCUIT_CLOSED);
        }
        answered(&circuit, START);
    }
    for (unsigned i = 0; i < FAILS; i++) {
        assert_int_equal(circuit.state, CIRCUIT_CLOSED);
        failed(&circuit, START);
    }
    assert_int_equal(circuit.state, CIRCUIT_OPEN);
}

static void while_it_is_open_nothing_goes_and_then_exactly_one(void **state)
{
    struct circuit circuit = in_state(CIRCUIT_OPEN);

    (void)state;
    for (int64_t now = START; now < START + DELAY; now += 10) {
        const struct circuit_step step = ask(&circuit, now);

        assert_false(step.may_go);
        assert_int_equal(now + step.wait_ms, START + DELAY);
    }
    assert_true(ask(&circuit, START + DELAY).may_go);
    for (int64_t now = START + DELAY; now < START + 2 * DELAY; now += 10) {
        assert_false(ask(&circuit, now).may_go);
    }
    /* The one was lost: its worker died, or its answer takes long. */
    assert_true(ask(&circuit, START + 2 * DELAY).may_go);
    assert_false(ask(&circuit, START + 2 * DELAY).may_go);
}

static void each_failure_of_the_one_doubles_the_wait_up_to_the_limit(void **state)
{
    static const int64_t waits[] = {DELAY, 2 * DELAY, 4 * DELAY, MAX, MAX, MAX};
    struct circuit circuit = in_state(CIRCUIT_OPEN);
    int64_t now = START;

    (void)state;
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_int_equal(circuit.at_ms - now, waits[i]);
        now = circuit.at_ms;
        assert_true(ask(&circuit, now).may_go);
        failed(&circuit, now);
        assert_int_equal(circuit.state, CIRCUIT_OPEN);
    }
    for (int i = 0; i < 400; i++) { /* past every counter's end */
        now = circuit.at_ms;
        assert_true(ask(&circuit, now).may_go);
        failed(&circuit, now);
        assert_int_equal(circuit.at_ms - now, MAX);
    }
    answered(&circuit, now);
    for (unsigned i = 0; i < FAILS; i++) {
        failed(&circuit, now);
    }
    assert_int_equal(circuit.at_ms - now, DELAY);
}

/* A host that swallows connections: its failure comes when another has been let go already. */
static void one_that_says_nothing_for_as_long_as_it_may_makes_the_next_wait_longer(void **state)
{
    static const int64_t waits[] = {2 * DELAY, 4 * DELAY, MAX, MAX};
    struct circuit circuit = in_state(CIRCUIT_HALF_OPEN);

    (void)state;
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        const int64_t now = circuit.at_ms;

        assert_true(ask(&circuit, now).may_go);
        failed_since(&circuit, now - 1, now + 1);
        assert_int_equal(circuit.state, CIRCUIT_HALF_OPEN);
        assert_false(ask(&circuit, now + waits[i] - 1).may_go);
        assert_int_equal(circuit.at_ms, now + waits[i]);
    }
}

static void an_answer_closes_it_whoever_gets_it(void **state)
{
    (void)state;
    for (unsigned s = 0; s < CIRCUIT_STATE_COUNT; s++) {
        struct circuit circuit = in_state((enum circuit_state)s);

        answered(&circuit, START + 1);
        assert_true(ask(&circuit, START + 1).may_go);
        assert_true(ask(&circuit, START + 1).may_go);
    }
}

static void failures_of_requests_from_before_change_nothing(void **state)
{
    struct circuit circuit = in_state(CIRCUIT_HALF_OPEN);
    struct circuit closed = in_state(CIRCUIT_OPEN);

    (void)state;
    for (int i = 0; i < 100; i++) {
        failed_since(&circuit, START + DELAY - 1, START + DELAY + 5);
    }
    assert_int_equal(circuit.state, CIRCUIT_HALF_OPEN);
    failed_since(&circuit, START + DELAY, START + DELAY + 5);
    assert_int_equal(circuit.state, CIRCUIT_OPEN);
    answered(&closed, START + 500);
    for (int i = 0; i < 100; i++) {
        failed_since(&closed, START + 499, START + 600);
    }
    assert_int_equal(closed.state, CIRCUIT_CLOSED);
    assert_int_equal(closed.failures, 0);
}

static void one_message_alone_never_opens_it_by_what_may_be_its_own_fault(void **state)
{
    struct circuit circuit = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        failed_by_its_message(&circuit, 7, START);
    }
    assert_int_equal(circuit.state, CIRCUIT_CLOSED);
    assert_int_equal(circuit.failures, 1);
    failed_by_its_message(&circuit, 8, START);
    failed_by_its_message(&circuit, 7, START);
    assert_int_equal(circuit.state, CIRCUIT_OPEN);
    /* As the one that finds out, it counts. */
    circuit.mark = 7;
    assert_true(ask(&circuit, circuit.at_ms).may_go);
    failed_by_its_message(&circuit, 7, circuit.at_ms);
    assert_int_equal(circuit.state, CIRCUIT_OPEN);
}

static void without_a_limit_it_never_opens_and_forgets_that_it_was(void **state)
{
    const struct circuit_limits off = {.failures = 0, .delay_ms = DELAY, .max_ms = MAX};
    struct circuit circuit = in_state(CIRCUIT_OPEN);
    struct circuit_input input = {.what = CIRCUIT_WAS_ASKED, .now_ms = START};
    struct circuit_step step = circuit_step(&circuit, &input, &off);

    (void)state;
    assert_true(step.may_go);
    assert_int_equal(step.next.state, CIRCUIT_CLOSED);
    input.what = CIRCUIT_HAS_FAILED;
    input.began_ms = START;
    circuit = (struct circuit){0};
    for (int i = 0; i < 1000; i++) {
        circuit = circuit_step(&circuit, &input, &off).next;
    }
    assert_int_equal(circuit.state, CIRCUIT_CLOSED);
}

/* Whatever stands in a shared cell: an asker goes, or is told a wait that ends. The seed is fixed:
 * every run walks the same way. */
static void garbage_costs_a_bounded_wait(void **state)
{
    unsigned seed = 20240229;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct circuit circuit;
        const int64_t now = rand_r(&seed) % 1000000;
        const struct circuit_input input = {
            .what = rand_r(&seed) % 3,
            .now_ms = now,
            .began_ms = now - rand_r(&seed) % 1000,
            .mark = (uint8_t)rand_r(&seed),
            .may_be_own_fault = rand_r(&seed) % 2,
        };
        const int state_number = rand_r(&seed) % 5 - 1;

        memcpy(&circuit.state, &state_number, sizeof(circuit.state));
        circuit.failures = (uint8_t)rand_r(&seed);
        circuit.opens = (uint8_t)rand_r(&seed);
        circuit.mark = (uint8_t)rand_r(&seed);
        circuit.at_ms = ((int64_t)rand_r(&seed) << 20) - ((int64_t)rand_r(&seed) << 19);
        const struct circuit_step step = circuit_step(&circuit, &input, &limits);

        assert_in_range(step.next.state, 0, CIRCUIT_STATE_COUNT - 1);
        if (input.what == CIRCUIT_WAS_ASKED && !step.may_go) {
            assert_in_range(step.wait_ms, 1, MAX);
        }
    }
}

static void a_mark_is_none_only_for_no_name(void **state)
{
    char name[8];

    (void)state;
    assert_int_equal(circuit_mark("", 0), 0);
    for (unsigned i = 0; i < 1000; i++) {
        memcpy(name, &i, sizeof(i));
        assert_int_not_equal(circuit_mark(name, sizeof(i)), 0);
    }
    assert_string_equal(circuit_state_name(CIRCUIT_HALF_OPEN), "half_open");
    assert_string_equal(circuit_state_name(CIRCUIT_STATE_COUNT), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_leads_from_every_state_to_where_a_reader_expects_it),
        cmocka_unit_test(it_opens_after_so_many_failures_in_a_row_and_not_before),
        cmocka_unit_test(while_it_is_open_nothing_goes_and_then_exactly_one),
        cmocka_unit_test(each_failure_of_the_one_doubles_the_wait_up_to_the_limit),
        cmocka_unit_test(one_that_says_nothing_for_as_long_as_it_may_makes_the_next_wait_longer),
        cmocka_unit_test(an_answer_closes_it_whoever_gets_it),
        cmocka_unit_test(failures_of_requests_from_before_change_nothing),
        cmocka_unit_test(one_message_alone_never_opens_it_by_what_may_be_its_own_fault),
        cmocka_unit_test(without_a_limit_it_never_opens_and_forgets_that_it_was),
        cmocka_unit_test(garbage_costs_a_bounded_wait),
        cmocka_unit_test(a_mark_is_none_only_for_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
