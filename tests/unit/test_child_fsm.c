/* Every (state, event) pair of child_fsm.def: invariants that hold for all of them, and the life of
 * a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "supervisor/child_fsm.h"

static bool has_process(enum child_state state)
{
    return state == CHILD_STARTING || state == CHILD_READY || state == CHILD_DRAINING ||
           state == CHILD_KILLING;
}

#define EACH_PAIR(state, event)                                                                    \
    for (enum child_state state = CHILD_DOWN; state < CHILD_STATE_COUNT; state++)                  \
        for (enum child_event event = CHILD_EVENT_SPAWNED; event < CHILD_EVENT_COUNT; event++)

static void every_pair_is_defined(void **unused)
{
    (void)unused;
    EACH_PAIR(state, event)
    {
        const struct child_step step = child_fsm_step(state, event);

        assert_int_not_equal(step.action, CHILD_ACTION_UNDEFINED);
        assert_true(step.next < CHILD_STATE_COUNT);
    }
}

static void what_is_ignored_changes_nothing(void **unused)
{
    (void)unused;
    EACH_PAIR(state, event)
    {
        const struct child_step step = child_fsm_step(state, event);

        if (step.action == CHILD_ACTION_IGNORE) {
            assert_int_equal(step.next, state);
        }
    }
}

static void a_process_comes_by_spawned_only_and_goes_by_its_end_only(void **unused)
{
    (void)unused;
    EACH_PAIR(state, event)
    {
        const bool before = has_process(state);
        const bool after = has_process(child_fsm_step(state, event).next);

        if (!before && after) {
            assert_int_equal(event, CHILD_EVENT_SPAWNED);
        }
        if (before && !after) {
            assert_true(event == CHILD_EVENT_EXITED || event == CHILD_EVENT_FAILED);
        }
    }
}

static void an_ended_process_is_never_taken_for_a_living_one(void **unused)
{
    (void)unused;
    for (enum child_state state = CHILD_DOWN; state < CHILD_STATE_COUNT; state++) {
        assert_false(has_process(child_fsm_step(state, CHILD_EVENT_EXITED).next));
        assert_false(has_process(child_fsm_step(state, CHILD_EVENT_FAILED).next));
    }
}

static void signals_go_to_living_processes_and_spawns_to_empty_slots_only(void **unused)
{
    (void)unused;
    EACH_PAIR(state, event)
    {
        const enum child_action action = child_fsm_step(state, event).action;

        if (action == CHILD_ACTION_TERM || action == CHILD_ACTION_KILL) {
            assert_true(has_process(state));
        }
        if (action == CHILD_ACTION_SPAWN || action == CHILD_ACTION_DELAY) {
            assert_false(has_process(child_fsm_step(state, event).next));
        }
    }
}

static void backoff_is_entered_with_a_delay_and_left_by_its_end(void **unused)
{
    (void)unused;
    EACH_PAIR(state, event)
    {
        const struct child_step step = child_fsm_step(state, event);

        if (step.next == CHILD_BACKOFF && state != CHILD_BACKOFF) {
            assert_int_equal(step.action, CHILD_ACTION_DELAY);
        }
    }
    assert_int_equal(child_fsm_step(CHILD_BACKOFF, CHILD_EVENT_TIMEOUT).action, CHILD_ACTION_SPAWN);
    assert_int_equal(child_fsm_step(CHILD_BACKOFF, CHILD_EVENT_EXITED).action, CHILD_ACTION_DELAY);
}

static void bad_configuration_is_not_tried_again(void **unused)
{
    (void)unused;
    for (enum child_event event = CHILD_EVENT_SPAWNED; event < CHILD_EVENT_COUNT; event++) {
        assert_int_not_equal(child_fsm_step(CHILD_FAILED, event).action, CHILD_ACTION_SPAWN);
        assert_int_not_equal(child_fsm_step(CHILD_FAILED, event).action, CHILD_ACTION_DELAY);
    }
}

/* Whatever the state: stop, then kill and the end of the process and stop again, leads to DOWN. */
static void stopping_ends_in_down_from_everywhere(void **unused)
{
    (void)unused;
    for (enum child_state state = CHILD_DOWN; state < CHILD_STATE_COUNT; state++) {
        enum child_state now = child_fsm_step(state, CHILD_EVENT_STOP).next;

        now = child_fsm_step(now, CHILD_EVENT_KILL).next;
        if (has_process(now)) {
            now = child_fsm_step(now, CHILD_EVENT_EXITED).next;
        }
        now = child_fsm_step(now, CHILD_EVENT_STOP).next;
        assert_int_equal(now, CHILD_DOWN);
    }
}

static void a_child_lives_drains_and_ends(void **unused)
{
    static const struct {
        enum child_event event;
        enum child_state next;
        enum child_action action;
    } life[] = {
        {CHILD_EVENT_SPAWNED, CHILD_STARTING, CHILD_ACTION_NONE},
        {CHILD_EVENT_READY, CHILD_READY, CHILD_ACTION_NONE},
        {CHILD_EVENT_EXITED, CHILD_BACKOFF, CHILD_ACTION_DELAY},
        {CHILD_EVENT_TIMEOUT, CHILD_BACKOFF, CHILD_ACTION_SPAWN},
        {CHILD_EVENT_SPAWNED, CHILD_STARTING, CHILD_ACTION_NONE},
        {CHILD_EVENT_TIMEOUT, CHILD_KILLING, CHILD_ACTION_KILL},
        {CHILD_EVENT_EXITED, CHILD_BACKOFF, CHILD_ACTION_DELAY},
        {CHILD_EVENT_TIMEOUT, CHILD_BACKOFF, CHILD_ACTION_SPAWN},
        {CHILD_EVENT_SPAWNED, CHILD_STARTING, CHILD_ACTION_NONE},
        {CHILD_EVENT_READY, CHILD_READY, CHILD_ACTION_NONE},
        {CHILD_EVENT_STOP, CHILD_DRAINING, CHILD_ACTION_TERM},
        {CHILD_EVENT_TIMEOUT, CHILD_KILLING, CHILD_ACTION_KILL},
        {CHILD_EVENT_EXITED, CHILD_BACKOFF, CHILD_ACTION_DELAY},
        {CHILD_EVENT_STOP, CHILD_DOWN, CHILD_ACTION_NONE},
    };
    enum child_state state = CHILD_DOWN;

    (void)unused;
    for (size_t i = 0; i < sizeof(life) / sizeof(life[0]); i++) {
        const struct child_step step = child_fsm_step(state, life[i].event);

        assert_int_equal(step.next, life[i].next);
        assert_int_equal(step.action, life[i].action);
        state = step.next;
    }
}

static void names_are_told_apart(void **unused)
{
    (void)unused;
    for (enum child_state state = CHILD_DOWN; state < CHILD_STATE_COUNT; state++) {
        assert_string_not_equal(child_state_name(state), "?");
    }
    for (enum child_event event = CHILD_EVENT_SPAWNED; event < CHILD_EVENT_COUNT; event++) {
        assert_string_not_equal(child_event_name(event), "?");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_defined),
        cmocka_unit_test(what_is_ignored_changes_nothing),
        cmocka_unit_test(a_process_comes_by_spawned_only_and_goes_by_its_end_only),
        cmocka_unit_test(an_ended_process_is_never_taken_for_a_living_one),
        cmocka_unit_test(signals_go_to_living_processes_and_spawns_to_empty_slots_only),
        cmocka_unit_test(backoff_is_entered_with_a_delay_and_left_by_its_end),
        cmocka_unit_test(bad_configuration_is_not_tried_again),
        cmocka_unit_test(stopping_ends_in_down_from_everywhere),
        cmocka_unit_test(a_child_lives_drains_and_ends),
        cmocka_unit_test(names_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
