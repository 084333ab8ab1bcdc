/* What one program hands to the next: there and back, and everything damaged is refused. */
#include "supervisor/upgrade_state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/shm/metrics.h"
#include "supervisor/metric_totals.h"

static void fill(struct upgrade_state *state)
{
    upgrade_state_init(state);
    state->generation = UINT64_MAX;
    state->supervisor_lock = 10;
    state->slot_lock = 11;
    state->shm = 12;
    state->lifeline[0] = 13;
    state->lifeline[1] = 14;
    state->listeners[0] = 15;
    state->listener_count = 1;
    state->wakes[5] = 16;
    state->store = 99;
    (void)snprintf(state->kinds, sizeof(state->kinds), "prompt,a");
    state->configured = strdup("workers: 1\n");
    state->running = strdup("workers: 2\n");
    state->children[0] = (struct child_record){.slot = 5,
                                               .role = SHM_ROLE_WORKER,
                                               .state = CHILD_DRAINING,
                                               .is_wanted = true,
                                               .pid = 77,
                                               .generation = 0x8000000000000001,
                                               .incarnation = 3,
                                               .started_ms = 4,
                                               .left_ms = -1};
    state->child_count = 1;
}

static int take(int fd, struct upgrade_state *ret)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", fd);
    assert_int_equal(setenv(UPGRADE_STATE_VARIABLE, text, 1), 0);
    const int result = upgrade_state_take(ret);
    assert_null(getenv(UPGRADE_STATE_VARIABLE));
    return result;
}

static int take_text(const char *text, struct upgrade_state *ret)
{
    const int fd = memfd_create("test", 0);

    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return take(fd, ret);
}

static int count_fd(int fd, void *arg)
{
    int *sum = arg;

    *sum += fd;
    return 0;
}

static void what_is_handed_over_comes_out_as_it_went_in(void **unused)
{
    static struct upgrade_state state, back;
    int sum = 0;

    (void)unused;
    fill(&state);
    assert_int_equal(take(upgrade_state_write(&state), &back), 1);
    assert_true(back.generation == UINT64_MAX);
    assert_int_equal(back.listener_count, 1);
    assert_int_equal(back.wakes[5], 16);
    assert_int_equal(back.wakes[6], -1);
    assert_int_equal(back.store, 99);
    assert_string_equal(back.kinds, "prompt,a");
    assert_string_equal(back.configured, "workers: 1\n");
    assert_string_equal(back.running, "workers: 2\n");
    assert_int_equal(back.child_count, 1);
    assert_memory_equal(&back.children[0], &state.children[0], sizeof(back.children[0]));
    assert_int_equal(upgrade_state_each_fd(&back, count_fd, &sum), 0);
    assert_int_equal(sum, 10 + 11 + 12 + 13 + 14 + 15 + 16);
    upgrade_state_done(&state);
    upgrade_state_done(&back);
}

static void without_the_variable_there_is_nothing(void **unused)
{
    static struct upgrade_state state;

    (void)unused;
    (void)unsetenv(UPGRADE_STATE_VARIABLE);
    assert_int_equal(upgrade_state_take(&state), 0);
}

/* Every member gone, or of another type, one after the other. */
static void a_document_with_anything_missing_or_of_another_type_is_refused(void **unused)
{
    static const char *const optional[] = {"totals", "wakes", NULL};
    static struct upgrade_state state, back;
    const char *key;
    json_t *value;

    (void)unused;
    fill(&state);
    const int fd = upgrade_state_write(&state);
    json_t *whole = lseek(fd, 0, SEEK_SET) == 0 ? json_loadfd(fd, 0, NULL) : NULL;
    assert_non_null(whole);
    close(fd);
    json_object_foreach(whole, key, value)
    {
        for (int how = 0; how < 2; how++) {
            json_t *damaged = json_copy(whole);
            bool may_miss = false;

            for (size_t i = 0; optional[i]; i++) {
                may_miss = may_miss || strcmp(key, optional[i]) == 0;
            }
            (void)(how == 0 ? json_object_del(damaged, key)
                            : json_object_set_new(damaged, key, json_true()));
            char *text = json_dumps(damaged, 0);
            upgrade_state_init(&back);
            const int result = take_text(text, &back);
            if (result != (may_miss ? 1 : -EPROTO)) {
                fail_msg("%s: %d", key, result);
            }
            upgrade_state_done(&back);
            free(text);
            json_decref(damaged);
        }
    }
    json_decref(whole);
    upgrade_state_done(&state);
}

static void garbage_and_another_version_are_refused(void **unused)
{
    static const char *const texts[] = {
        "", "{", "[]", "null", "{\"version\":2}", "{\"version\":\"1\"}"};
    static struct upgrade_state back;

    (void)unused;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        upgrade_state_init(&back);
        assert_int_equal(take_text(texts[i], &back), -EPROTO);
        upgrade_state_done(&back);
    }
    assert_int_equal(setenv(UPGRADE_STATE_VARIABLE, "many", 1), 0);
    assert_int_equal(upgrade_state_take(&back), -EPROTO);
    upgrade_state_done(&back);
}

static void totals_are_added_by_the_metrics_name_and_what_does_not_fit_is_left_out(void **unused)
{
    struct metrics *metrics = metrics_create_private();
    struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));
    char text[400];

    (void)unused;
    (void)snprintf(
        text, sizeof(text),
        "{\"accepts_total\": {\"cells\": %d, \"values\": {\"0\": 12, \"99\": 5, \"1\": -3}},"
        " \"locks_recovered_total\": {\"cells\": 999, \"values\": {\"0\": 7}},"
        " \"locks_held\": {\"cells\": 1, \"values\": {\"0\": 7}}, \"gone_total\": 3}",
        LABELS_ACCEPT_RESULT);
    json_t *totals = json_loads(text, 0, NULL);
    assert_non_null(totals);
    metrics_add(metrics, METRIC_accepts_total, 0, 1);
    metric_totals_import(metrics, totals);
    metrics_snapshot_of(metrics, snapshot);
    assert_int_equal(metrics_value(snapshot, METRIC_accepts_total, 0), 13);
    assert_int_equal(metrics_value(snapshot, METRIC_accepts_total, 1), 0);
    assert_int_equal(metrics_value(snapshot, METRIC_locks_recovered_total, 0), 0);
    assert_int_equal(metrics_value(snapshot, METRIC_locks_held, 0), 0);
    json_decref(totals);
    free(snapshot);
    metrics_destroy(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_handed_over_comes_out_as_it_went_in),
        cmocka_unit_test(without_the_variable_there_is_nothing),
        cmocka_unit_test(a_document_with_anything_missing_or_of_another_type_is_refused),
        cmocka_unit_test(garbage_and_another_version_are_refused),
        cmocka_unit_test(totals_are_added_by_the_metrics_name_and_what_does_not_fit_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
