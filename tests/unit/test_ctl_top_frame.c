/* A frame of `top`: it fits the terminal whatever there is to show, and says what it leaves out;
 * rates are those between two samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/print.h"
#include "api/ctl/top_figures.h"
#include "api/ctl/top_frame.h"
#include "api/ctl/top_sample.h"
#include "common/core/buf.h"
#include "common/core/span.h"

static struct top_sample *sample_of(size_t processes, size_t flights, struct metrics *m)
{
    struct top_sample *sample = calloc(1, sizeof(*sample));

    assert_non_null(sample);
    sample->generation = 0xabc;
    sample->mono_ms = 1000000;
    sample->uptime_ms = 100000;
    sample->process_count = processes;
    for (uint32_t i = 0; i < processes; i++) {
        sample->processes[i] = (struct top_process){
            .slot = i, .role = SHM_ROLE_WORKER, .state = SHM_PROCESS_READY, .pid = 100};
    }
    sample->flights = calloc(flights + 1, sizeof(*sample->flights));
    sample->flight_count = flights;
    assert_non_null(sample->flights);
    for (size_t i = 0; i < flights; i++) {
        memset(sample->flights[i].session, 's', 128);
        snprintf(sample->flights[i].workspace, sizeof(sample->flights[i].workspace), "w%zu", i);
    }
    metrics_snapshot_of(m, &sample->metrics);
    return sample;
}

static void frames_fit_the_terminal(void **state)
{
    struct metrics *m = metrics_create_private();

    (void)state;
    for (size_t round = 0; round < 200; round++) {
        const struct top_view view = {.rows = 1 + round % 40,
                                      .columns = 1 + round * 7 % 130,
                                      .state_dir = "/a/state/directory"};
        struct top_sample *sample = sample_of(round % 64, round * 5 % 90, m);
        struct top_figures figures;
        struct buf out;
        size_t rows = 0;

        buf_init(&out, 1000000);
        top_figures_compute(sample, NULL, &figures);
        assert_int_equal(top_frame_text(sample, &figures, &view, &out), 0);
        for (const char *line = out.bytes; *line; line = strchr(line, '\n') + 1, rows++) {
            assert_true(print_width((struct span){line, strcspn(line, "\n")}) <= view.columns);
        }
        assert_true(rows <= view.rows);
        buf_done(&out);
        top_sample_destroy(&sample);
    }
    metrics_destroy(&m);
}

static void a_frame_says_what_it_leaves_out(void **state)
{
    struct metrics *m = metrics_create_private();
    struct top_sample *sample = sample_of(4, 50, m);
    const struct top_view small = {.rows = 24, .columns = 80, .state_dir = "d"};
    const struct top_view all = {.state_dir = "d"};
    struct top_figures figures;
    struct buf out;

    (void)state;
    buf_init(&out, 1000000);
    top_figures_compute(sample, NULL, &figures);
    assert_int_equal(top_frame_text(sample, &figures, &small, &out), 0);
    assert_non_null(strstr(out.bytes, "PROCESSES (4)"));
    assert_non_null(strstr(out.bytes, "IN FLIGHT (8 of 50, oldest first)"));
    assert_null(strstr(out.bytes, "\033"));
    buf_reset(&out);
    assert_int_equal(top_frame_text(sample, &figures, &all, &out), 0);
    assert_non_null(strstr(out.bytes, "IN FLIGHT (50)"));
    assert_non_null(strstr(out.bytes, "w49 "));
    buf_reset(&out);
    assert_int_equal(top_frame_json(sample, &figures, &out), 0);
    assert_non_null(strstr(out.bytes, "\"generation\":\"abc\""));
    buf_done(&out);
    top_sample_destroy(&sample);
    metrics_destroy(&m);
}

static void targets_that_are_not_asked_are_counted(void **state)
{
    const struct top_view view = {.state_dir = "/state"};
    struct metrics *m = metrics_create_private();
    struct top_sample *sample = sample_of(1, 0, m);
    struct top_figures figures;
    struct buf out;

    (void)state;
    buf_init(&out, 100000);
    top_figures_compute(sample, NULL, &figures);
    assert_int_equal(top_frame_text(sample, &figures, &view, &out), 0);
    assert_null(strstr(out.bytes, "circuits"));
    sample->circuits[CIRCUIT_OPEN] = 3;
    buf_reset(&out);
    assert_int_equal(top_frame_text(sample, &figures, &view, &out), 0);
    assert_non_null(strstr(out.bytes, "circuits open 3"));
    buf_reset(&out);
    assert_int_equal(top_frame_json(sample, &figures, &out), 0);
    assert_non_null(strstr(out.bytes, "\"circuits\":{\"open\":3,\"half_open\":0}"));
    buf_done(&out);
    top_sample_destroy(&sample);
    metrics_destroy(&m);
}

static void rates_are_those_between_two_samples(void **state)
{
    struct metrics *m = metrics_create_private();
    struct top_figures figures;

    (void)state;
    metrics_add(m, METRIC_accepts_total, LABEL_ACCEPT_RESULT_ACCEPTED, 1000);
    metrics_observe_seconds(m, METRIC_accept_duration_seconds, 0, 100);
    struct top_sample *earlier = sample_of(0, 0, m);

    metrics_add(m, METRIC_accepts_total, LABEL_ACCEPT_RESULT_ACCEPTED, 20);
    metrics_add(m, METRIC_accepts_total, LABEL_ACCEPT_RESULT_SESSION_FULL, 4);
    metrics_add_delivery(m, 0, OUTCOME_CONFIRMED, 6);
    metrics_add_delivery(m, 5, OUTCOME_CONFIRMED, 4);
    metrics_add_delivery(m, 5, OUTCOME_RETRY, 2);
    metrics_observe_seconds(m, METRIC_accept_duration_seconds, 0, 0.0002);
    struct top_sample *later = sample_of(0, 0, m);

    later->mono_ms += 2000;
    top_figures_compute(later, earlier, &figures);
    assert_false(figures.is_since_start);
    assert_true(figures.accepts == 10 && figures.refused == 2 && figures.duplicates == 0);
    assert_true(figures.deliveries == 6 && figures.outcomes[OUTCOME_CONFIRMED] == 5);
    assert_true(figures.accept.p99 > 0 && figures.accept.p99 < 0.001);
    assert_true(figures.delivery.p50 < 0); /* nothing was measured */

    later->generation++; /* another outboxd: the earlier sample says nothing about it */
    top_figures_compute(later, earlier, &figures);
    assert_true(figures.is_since_start && figures.accepts > 10.19 && figures.accepts < 10.21);
    later->uptime_ms = -1;
    top_figures_compute(later, NULL, &figures);
    assert_true(figures.accepts == 0);
    top_sample_destroy(&earlier);
    top_sample_destroy(&later);
    metrics_destroy(&m);
}

static void a_process_that_keeps_dying_is_told_with_its_deaths(void **state)
{
    const struct top_view view = {.state_dir = "/state"};
    struct metrics *m = metrics_create_private();
    struct top_sample *sample = sample_of(2, 0, m);
    struct top_figures figures;
    struct buf out;

    (void)state;
    sample->processes[1].state = SHM_PROCESS_WAITING;
    sample->processes[1].deaths = 7;
    buf_init(&out, 100000);
    top_figures_compute(sample, NULL, &figures);
    assert_int_equal(top_frame_text(sample, &figures, &view, &out), 0);
    assert_non_null(strstr(out.bytes, "waiting, died 7x"));
    assert_null(strstr(out.bytes, "ready, died"));
    buf_reset(&out);
    assert_int_equal(top_frame_json(sample, &figures, &out), 0);
    assert_non_null(strstr(out.bytes, "\"state\":\"waiting\",\"deaths_in_a_row\":7"));
    buf_done(&out);
    top_sample_destroy(&sample);
    metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_fit_the_terminal),
        cmocka_unit_test(a_process_that_keeps_dying_is_told_with_its_deaths),
        cmocka_unit_test(a_frame_says_what_it_leaves_out),
        cmocka_unit_test(targets_that_are_not_asked_are_counted),
        cmocka_unit_test(rates_are_those_between_two_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
