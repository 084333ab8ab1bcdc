/* Replacing all children: every view of up to three workers, and a run from the first step to the
 * last. */
#include "supervisor/rollover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MAX 3U

typedef void check(const struct rollover_view *view, enum rollover_step step);

static void each_view(check *check_one)
{
    for (uint32_t n = 0; n < 4 * 4 * 4 * 2 * 2 * 2 * 2 * 2; n++) {
        uint32_t left = n;
        struct rollover_view view = {.apis.wanted = 1};

        view.workers.wanted = left % 4, left /= 4;
        view.workers.started = left % 4, left /= 4;
        view.workers.ready = left % 4, left /= 4;
        view.workers.has_free_slot = left % 2, left /= 2;
        view.apis.started = left % 2, left /= 2;
        view.apis.ready = left % 2, left /= 2;
        view.apis.has_free_slot = left % 2, left /= 2;
        view.has_failed = left % 2;
        if (view.workers.ready <= view.workers.started && view.apis.ready <= view.apis.started) {
            check_one(&view, rollover_next(&view));
        }
    }
}

static void check_commit(const struct rollover_view *view, enum rollover_step step)
{
    const bool are_ready = view->workers.ready >= view->workers.wanted && view->apis.ready >= 1;

    assert_int_equal(step == ROLLOVER_COMMIT, are_ready && !view->has_failed);
    assert_int_equal(step == ROLLOVER_ABORT, view->has_failed);
}

static void the_old_ones_go_only_when_all_successors_are_ready_and_none_failed(void **state)
{
    (void)state;
    each_view(check_commit);
}

static void check_start(const struct rollover_view *view, enum rollover_step step)
{
    if (step == ROLLOVER_START_WORKER) {
        assert_true(view->workers.has_free_slot);
        assert_int_equal(view->workers.started, view->workers.ready);
    }
    if (step == ROLLOVER_START_API) {
        assert_true(view->apis.has_free_slot);
        assert_true(view->workers.ready >= view->workers.wanted);
    }
    if (step == ROLLOVER_WAIT_FOR_SLOT) {
        assert_false(view->workers.has_free_slot && view->apis.has_free_slot);
    }
}

static void one_starts_at_a_time_and_the_api_after_the_workers(void **state)
{
    (void)state;
    each_view(check_start);
}

static void a_replacement_of_three_workers_takes_four_starts(void **state)
{
    struct rollover_view view = {
        .workers = {.wanted = MAX, .has_free_slot = true},
        .apis = {.wanted = 1, .has_free_slot = true},
    };

    (void)state;
    for (uint32_t i = 0; i < MAX; i++) {
        assert_int_equal(rollover_next(&view), ROLLOVER_START_WORKER);
        view.workers.started++;
        assert_int_equal(rollover_next(&view), ROLLOVER_WAIT);
        view.workers.ready++;
    }
    assert_int_equal(rollover_next(&view), ROLLOVER_START_API);
    view.apis.started++;
    assert_int_equal(rollover_next(&view), ROLLOVER_WAIT);
    view.apis.ready++;
    assert_int_equal(rollover_next(&view), ROLLOVER_COMMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_old_ones_go_only_when_all_successors_are_ready_and_none_failed),
        cmocka_unit_test(one_starts_at_a_time_and_the_api_after_the_workers),
        cmocka_unit_test(a_replacement_of_three_workers_takes_four_starts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
