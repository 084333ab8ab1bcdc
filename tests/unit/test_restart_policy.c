/* Delays before a restart, classes of exit status, the watchdog, other nodes' counters: the
 * supervisor's pure parts whose only input is time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "supervisor/node_watch.h"
#include "supervisor/preflight.h"
#include "supervisor/restart_policy.h"
#include "supervisor/watchdog.h"

/* ---- restart policy ---- */

static void the_first_death_costs_no_delay(void **unused)
{
    struct restart_history history = {0};

    (void)unused;
    assert_int_equal(restart_delay_ms(&history), 0);
    restart_note_death(&history, 1000);
    assert_int_equal(restart_delay_ms(&history), 0);
}

static void the_delay_doubles_up_to_its_limit_and_stays_there_however_long_it_goes_on(void **unused)
{
    struct restart_history history = {0};
    int64_t last_ms = 0;

    (void)unused;
    restart_note_death(&history, 0);
    for (int i = 0; i < 1000; i++) {
        restart_note_death(&history, i % 2 == 0 ? 0 : RESTART_HEALTHY_MS - 1);
        const int64_t delay_ms = restart_delay_ms(&history);

        assert_int_equal(delay_ms, i == 0                               ? RESTART_DELAY_MIN_MS
                                   : last_ms * 2 < RESTART_DELAY_MAX_MS ? last_ms * 2
                                                                        : RESTART_DELAY_MAX_MS);
        last_ms = delay_ms;
    }
    assert_int_equal(last_ms, RESTART_DELAY_MAX_MS);
    history.deaths = UINT32_MAX;
    restart_note_death(&history, 0);
    assert_int_equal(restart_delay_ms(&history), RESTART_DELAY_MAX_MS);
}

static void a_healthy_spell_makes_earlier_deaths_forgotten(void **unused)
{
    struct restart_history history = {0};

    (void)unused;
    for (int i = 0; i < 8; i++) {
        restart_note_death(&history, 0);
    }
    assert_true(restart_delay_ms(&history) > 0);
    restart_note_death(&history, RESTART_HEALTHY_MS);
    assert_int_equal(history.deaths, 1);
    assert_int_equal(restart_delay_ms(&history), 0);
}

static void what_serves_long_enough_is_no_longer_held_to_its_deaths(void **unused)
{
    struct restart_history history = {0};

    (void)unused;
    restart_note_death(&history, 0);
    restart_note_death(&history, 0);
    assert_int_equal(restart_note_serving(&history, RESTART_HEALTHY_MS - 1), 0);
    assert_int_equal(history.deaths, 2);
    assert_int_equal(restart_note_serving(&history, RESTART_HEALTHY_MS), 2);
    assert_int_equal(history.deaths, 0);
    assert_int_equal(restart_note_serving(&history, RESTART_HEALTHY_MS + 500), 0);
}

static void exit_statuses_are_classed(void **unused)
{
    (void)unused;
    assert_int_equal(death_of(0), DEATH_CLEAN);
    assert_int_equal(death_of(1 << 8), DEATH_FAILED);
    assert_int_equal(death_of(2 << 8), DEATH_BAD_CONFIG);
    assert_int_equal(death_of(9), DEATH_SIGNAL);
    assert_int_equal(death_of(11 | 0x80), DEATH_SIGNAL); /* with a core */
}

/* ---- watchdog ---- */

static void a_beat_that_changes_never_expires_whatever_its_value(void **unused)
{
    struct watchdog watchdog = {0};

    (void)unused;
    watchdog_reset(&watchdog, 0);
    for (int64_t now_ms = 0; now_ms < 100000; now_ms += 500) {
        assert_false(
            watchdog_has_expired(&watchdog, now_ms % 3 == 0 ? INT64_MAX : -now_ms, now_ms, 1000));
    }
}

static void a_beat_that_stands_expires_once_the_limit_has_passed(void **unused)
{
    struct watchdog watchdog = {0};

    (void)unused;
    watchdog_reset(&watchdog, 100);
    assert_false(watchdog_has_expired(&watchdog, 7, 100, 1000));
    assert_false(watchdog_has_expired(&watchdog, 7, 1099, 1000));
    assert_true(watchdog_has_expired(&watchdog, 7, 1100, 1000));
    watchdog_reset(&watchdog, 1100); /* we were stopped ourselves */
    assert_false(watchdog_has_expired(&watchdog, 7, 1600, 1000));
}

/* ---- other nodes ---- */

static struct node_watch *new_watch(void)
{
    struct node_watch *watch = malloc(sizeof(*watch));

    assert_non_null(watch);
    node_watch_init(watch);
    return watch;
}

static void a_node_is_dead_after_ten_seconds_of_an_unchanged_counter(void **unused)
{
    struct node_watch *watch = new_watch();

    (void)unused;
    node_watch_see(watch, "b", 7);
    assert_false(node_watch_is_dead(watch, "b", 7));
    node_watch_counter(watch, "b", 7, 41, 1000, 1010);
    node_watch_counter(watch, "b", 7, 41, 11009, 11020);
    assert_false(
        node_watch_is_dead(watch, "b", 7)); /* one millisecond short, from answer to question */
    node_watch_counter(watch, "b", 7, 41, 11010, 11020);
    assert_true(node_watch_is_dead(watch, "b", 7));
    assert_false(node_watch_is_dead(watch, "b", 8));
    assert_false(node_watch_is_dead(watch, "c", 7));
    node_watch_counter(watch, "b", 7, 42, 13000, 13001); /* it lives after all */
    assert_false(node_watch_is_dead(watch, "b", 7));
    free(watch);
}

static void an_observer_that_lost_its_connection_starts_anew(void **unused)
{
    struct node_watch *watch = new_watch();

    (void)unused;
    node_watch_see(watch, "b", 7);
    node_watch_counter(watch, "b", 7, 0, 1000, 1000);
    node_watch_reset(watch);
    node_watch_counter(watch, "b", 7, 0, 60000, 60001);
    assert_false(node_watch_is_dead(watch, "b", 7));
    node_watch_counter(watch, "b", 7, 0, 70001, 70002);
    assert_true(node_watch_is_dead(watch, "b", 7));
    free(watch);
}

static void what_is_not_seen_any_more_is_forgotten(void **unused)
{
    struct node_watch *watch = new_watch();

    (void)unused;
    for (uint64_t g = 0; g < NODE_WATCH_MAX + 10; g++) {
        node_watch_see(watch, "b", g);
    }
    assert_int_equal(watch->count, NODE_WATCH_MAX);
    node_watch_forget_unseen(watch);
    assert_int_equal(watch->count, NODE_WATCH_MAX);
    node_watch_see(watch, "b", 3);
    node_watch_forget_unseen(watch);
    assert_int_equal(watch->count, 1);
    assert_int_equal(watch->nodes[0].generation, 3);
    free(watch);
}

/* ---- preflight ---- */

static void versions_before_seven_are_refused(void **unused)
{
    (void)unused;
    assert_null(store_version_refusal("8.0.1"));
    assert_null(store_version_refusal("7.0.0"));
    assert_null(store_version_refusal("10.2"));
    assert_non_null(store_version_refusal("6.2.14"));
    assert_non_null(store_version_refusal(""));
    assert_non_null(store_version_refusal("eight"));
    assert_non_null(store_version_refusal("8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_death_costs_no_delay),
        cmocka_unit_test(the_delay_doubles_up_to_its_limit_and_stays_there_however_long_it_goes_on),
        cmocka_unit_test(a_healthy_spell_makes_earlier_deaths_forgotten),
        cmocka_unit_test(what_serves_long_enough_is_no_longer_held_to_its_deaths),
        cmocka_unit_test(exit_statuses_are_classed),
        cmocka_unit_test(a_beat_that_changes_never_expires_whatever_its_value),
        cmocka_unit_test(a_beat_that_stands_expires_once_the_limit_has_passed),
        cmocka_unit_test(a_node_is_dead_after_ten_seconds_of_an_unchanged_counter),
        cmocka_unit_test(an_observer_that_lost_its_connection_starts_anew),
        cmocka_unit_test(what_is_not_seen_any_more_is_forgotten),
        cmocka_unit_test(versions_before_seven_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
