/* The line that `systemctl status` shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/status_line.h"

static void assert_line(const struct status_facts *facts, const char *expected)
{
    char line[STATUS_LINE_MAX];

    status_line(facts, line);
    assert_string_equal(line, expected);
}

static void serving_tells_workers_deliveries_and_what_waits(void **unused)
{
    struct status_facts facts = {
        .kind = STATUS_LINE_SERVING, .workers = 2, .in_flight = 12, .waiting = 340, .failed = 3};

    (void)unused;
    assert_line(&facts, "serving: 2 workers, 12 in flight"); /* the store was not asked yet */
    facts.has_counts = true;
    assert_line(&facts, "serving: 2 workers, 12 in flight, 340 waiting, 3 failed");
    facts.failed = 0;
    facts.workers = 1;
    assert_line(&facts, "serving: 1 worker, 12 in flight, 340 waiting");
}

static void a_store_that_is_away_is_told_with_its_time(void **unused)
{
    const struct status_facts facts = {.kind = STATUS_LINE_STORE_AWAY, .away_since_wall_ms = 1000};

    (void)unused;
    assert_line(&facts, "the store is away since 1970-01-01T00:00:01.000Z: nothing is accepted");
}

static void draining_tells_what_is_left(void **unused)
{
    struct status_facts facts = {.kind = STATUS_LINE_DRAINING, .in_flight = 14};

    (void)unused;
    assert_line(&facts, "draining: 14 deliveries left");
    facts.in_flight = 1;
    assert_line(&facts, "draining: 1 delivery left");
}

static void every_kind_has_a_line_and_any_figure_fits(void **unused)
{
    (void)unused;
    for (int kind = STATUS_LINE_WAITING_FOR_STORE; kind <= STATUS_LINE_ENDING; kind++) {
        const struct status_facts facts = {.kind = (enum status_line_kind)kind,
                                           .workers = UINT64_MAX,
                                           .in_flight = UINT64_MAX,
                                           .has_counts = true,
                                           .waiting = UINT64_MAX,
                                           .failed = UINT64_MAX,
                                           .away_since_wall_ms = INT64_MAX};
        char line[STATUS_LINE_MAX];

        status_line(&facts, line);
        assert_true(strlen(line) > 5 && strlen(line) < STATUS_LINE_MAX - 1);
        assert_null(strchr(line, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serving_tells_workers_deliveries_and_what_waits),
        cmocka_unit_test(a_store_that_is_away_is_told_with_its_time),
        cmocka_unit_test(draining_tells_what_is_left),
        cmocka_unit_test(every_kind_has_a_line_and_any_figure_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
