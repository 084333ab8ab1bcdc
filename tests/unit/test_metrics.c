/* Counting and reading back: labels, types, histograms, sums over slots. */
#include <math.h>

#include "tests/unit/shm_fixture.h"

struct counted {
    struct metrics *m;
    struct metrics_snapshot *snapshot;
};

static int setup(void **state)
{
    struct counted *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->m = metrics_create_private();
    c->snapshot = calloc(1, sizeof(*c->snapshot));
    assert_non_null(c->m);
    assert_non_null(c->snapshot);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct counted *c = *state;

    metrics_destroy(&c->m);
    assert_null(c->m);
    free(c->snapshot);
    free(c);
    return 0;
}

static uint64_t value(struct counted *c, enum metric metric, size_t label)
{
    metrics_snapshot_of(c->m, c->snapshot);
    return metrics_value(c->snapshot, metric, label);
}

static uint64_t sum_of_all_cells(struct counted *c)
{
    uint64_t sum = 0;

    metrics_snapshot_of(c->m, c->snapshot);
    for (size_t i = 0; i < METRICS_CELLS; i++) {
        sum += c->snapshot->cells[i];
    }
    return sum;
}

static void a_counter_counts_under_its_label_only(void **state)
{
    struct counted *c = *state;

    metrics_add(c->m, METRIC_accepts_total, LABEL_ACCEPT_RESULT_DUPLICATE, 2);
    metrics_add(c->m, METRIC_accepts_total, LABEL_ACCEPT_RESULT_DUPLICATE, 1);
    assert_int_equal(value(c, METRIC_accepts_total, LABEL_ACCEPT_RESULT_DUPLICATE), 3);
    assert_int_equal(sum_of_all_cells(c), 3);
}

static void cells_of_different_series_never_overlap(void **state)
{
    struct counted *c = *state;
    unsigned char used[METRICS_CELLS] = {0};

    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);
        assert_int_equal(desc->label_count,
                         desc->labels->dims[0].count * desc->labels->dims[1].count);
        for (size_t i = 0; i < desc->label_count * desc->width; i++) {
            assert_true(desc->first_cell + i < METRICS_CELLS);
            assert_int_equal(used[desc->first_cell + i]++, 0);
        }
    }
    assert_int_equal(used[0], 0); /* the anchor */
    assert_int_equal(sum_of_all_cells(c), 0);
}

static void labels_out_of_range_go_to_other_or_nowhere(void **state)
{
    struct counted *c = *state;

    metrics_add(c->m, METRIC_accepts_total, LABELS_ACCEPT_RESULT, 1);
    metrics_add(c->m, METRIC_accepts_total, SIZE_MAX, 1);
    metrics_add(c->m, METRIC_deliveries_total, LABELS_KIND_OUTCOME, 1);
    metrics_add(c->m, METRIC_COUNT, 0, 1);
    metrics_add_delivery(c->m, 0, OUTCOME_COUNT, 1);
    metrics_add_restart(c->m, LABELS_ROLE, LABEL_DEATH_REASON_EXIT, 1);
    metrics_add_store_request(c->m, 0, LABELS_STORE_RESULT, 1);
    assert_int_equal(sum_of_all_cells(c), 0);
    metrics_add_delivery(c->m, 32, OUTCOME_CONFIRMED, 1);
    metrics_add_delivery(c->m, SIZE_MAX, OUTCOME_CONFIRMED, 1);
    assert_int_equal(
        value(c, METRIC_deliveries_total, LABEL_KIND_OTHER * OUTCOME_COUNT + OUTCOME_CONFIRMED), 2);
    metrics_observe_ns(c->m, METRIC_delivery_duration_seconds, 1000, 1);
    struct metrics_histogram histogram;
    metrics_snapshot_of(c->m, c->snapshot);
    metrics_histogram(c->snapshot, METRIC_delivery_duration_seconds, LABEL_KIND_OTHER, &histogram);
    assert_int_equal(histogram.count, 1);
}

static void two_labels_have_a_cell_for_each_pair(void **state)
{
    struct counted *c = *state;

    for (size_t kind = 0; kind < LABELS_KIND; kind++) {
        for (size_t outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
            metrics_add_delivery(c->m, kind, (enum outcome)outcome, kind * 100 + outcome + 1);
        }
    }
    for (size_t kind = 0; kind < LABELS_KIND; kind++) {
        for (size_t outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
            assert_int_equal(value(c, METRIC_deliveries_total, kind * OUTCOME_COUNT + outcome),
                             kind * 100 + outcome + 1);
        }
    }
    metrics_add_restart(c->m, LABEL_ROLE_STORE, LABEL_DEATH_REASON_SPAWN, 4);
    assert_int_equal(value(c, METRIC_process_restarts_total, LABELS_ROLE_REASON - 1), 4);
}

static void a_status_is_counted_under_its_number_or_other(void **state)
{
    struct counted *c = *state;
    const size_t row = 5 * LABELS_HTTP_STATUS;

    metrics_add_http_request(c->m, 5, 202, 1);
    metrics_add_http_request(c->m, 5, 503, 2);
    metrics_add_http_request(c->m, 5, 418, 3);
    metrics_add_http_request(c->m, 5, 0, 4);
    assert_int_equal(value(c, METRIC_http_requests_total, row + LABEL_HTTP_STATUS_202), 1);
    assert_int_equal(value(c, METRIC_http_requests_total, row + LABEL_HTTP_STATUS_503), 2);
    assert_int_equal(value(c, METRIC_http_requests_total, row + LABEL_HTTP_STATUS_OTHER), 7);
}

static void each_operation_works_on_its_own_types_only(void **state)
{
    struct counted *c = *state;

    metrics_set(c->m, METRIC_accepts_total, 0, 7);             /* a counter is not set */
    metrics_sub(c->m, METRIC_accepts_total, 0, 7);             /* and never goes back */
    metrics_add(c->m, METRIC_accept_duration_seconds, 0, 7);   /* a histogram is observed */
    metrics_observe_seconds(c->m, METRIC_accepts_total, 0, 7); /* a counter is not */
    assert_int_equal(sum_of_all_cells(c), 0);
    metrics_add(c->m, METRIC_locks_held, 0, 5);
    metrics_sub(c->m, METRIC_locks_held, 0, 2);
    assert_int_equal(value(c, METRIC_locks_held, 0), 3);
    metrics_loop_ran(c->m, LABEL_LOOP_SWEEP, 1796083200999);
    assert_int_equal(value(c, METRIC_loop_last_run_timestamp_seconds, LABEL_LOOP_SWEEP),
                     1796083200);
    metrics_add(c->m, METRIC_verifications_total, 0, 1);
    metrics_reset_gauges(c->m); /* sums only: the last run stays */
    assert_int_equal(value(c, METRIC_locks_held, 0), 0);
    assert_int_equal(value(c, METRIC_loop_last_run_timestamp_seconds, LABEL_LOOP_SWEEP),
                     1796083200);
    assert_int_equal(value(c, METRIC_verifications_total, 0), 1);
}

static void nothing_is_counted_without_metrics(void **state)
{
    struct counted *c = *state;

    metrics_add(NULL, METRIC_accepts_total, 0, 1);
    metrics_sub(NULL, METRIC_locks_held, 0, 1);
    metrics_set(NULL, METRIC_locks_held, 0, 1);
    metrics_observe_seconds(NULL, METRIC_accept_duration_seconds, 0, 1);
    metrics_observe_ns(NULL, METRIC_accept_duration_seconds, 0, 1);
    metrics_add_delivery(NULL, 0, OUTCOME_CONFIRMED, 1);
    metrics_add_http_request(NULL, 0, 200, 1);
    metrics_loop_ran(NULL, LABEL_LOOP_API, 1);
    metrics_reset_gauges(NULL);
    metrics_snapshot_of(NULL, c->snapshot);
    struct metrics *none = NULL;
    metrics_destroy(&none);
}

static void observe(struct counted *c, double seconds)
{
    metrics_observe_seconds(c->m, METRIC_accept_duration_seconds, 0, seconds);
}

static void histogram(struct counted *c, struct metrics_histogram *ret)
{
    metrics_snapshot_of(c->m, c->snapshot);
    metrics_histogram(c->snapshot, METRIC_accept_duration_seconds, 0, ret);
}

static void a_bound_belongs_to_its_bucket(void **state)
{
    struct counted *c = *state;
    struct metrics_histogram h;

    for (size_t i = 0; i + 1 < BUCKETS_CALL; i++) {
        histogram(c, &h);
        const double bound = strtod(h.bounds->texts[i], NULL);
        const uint64_t before = h.buckets[i];
        const uint64_t above = h.buckets[i + 1];
        observe(c, bound); /* le: less or equal */
        metrics_observe_ns(c->m, METRIC_accept_duration_seconds, 0,
                           (int64_t)llround(bound * 1e9) + 1);
        histogram(c, &h);
        assert_int_equal(h.buckets[i], before + 1);
        assert_int_equal(h.buckets[i + 1], above + 1);
    }
    assert_int_equal(h.count, 2 * (BUCKETS_CALL - 1));
}

static void bounds_grow_and_their_texts_say_the_same(void **state)
{
    (void)state;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);

        assert_true((desc->type == METRIC_TYPE_HISTOGRAM) == (desc->buckets != NULL));
        for (size_t i = 0; desc->buckets && i + 1 < desc->buckets->count; i++) {
            const uint64_t us = desc->buckets->bounds_us[i];

            assert_true(i == 0 || us > desc->buckets->bounds_us[i - 1]);
            assert_true(fabs(strtod(desc->buckets->texts[i], NULL) * 1e6 - (double)us) < 1e-3);
        }
        if (desc->buckets) {
            assert_int_equal(desc->width, desc->buckets->count + 1);
            assert_string_equal(desc->buckets->texts[desc->buckets->count - 1], "+Inf");
        }
    }
}

static void absurd_durations_are_counted_as_the_nearest_sane_one(void **state)
{
    struct counted *c = *state;
    struct metrics_histogram h;

    observe(c, -1);
    observe(c, (double)NAN);
    observe(c, (double)-INFINITY);
    metrics_observe_ns(c->m, METRIC_accept_duration_seconds, 0, INT64_MIN);
    histogram(c, &h);
    assert_int_equal(h.buckets[0], 4);
    assert_true(h.sum_seconds >= 0 && h.sum_seconds <= 0); /* zero */
    observe(c, (double)INFINITY);
    observe(c, 1e300);
    metrics_observe_ns(c->m, METRIC_accept_duration_seconds, 0, INT64_MAX);
    histogram(c, &h);
    assert_int_equal(h.buckets[BUCKETS_CALL - 1], 3);
    assert_int_equal(h.count, 7);
}

static void sums_are_exact(void **state)
{
    struct counted *c = *state;
    struct metrics_histogram h;

    for (int i = 0; i < 1000; i++) {
        observe(c, 0.000123);
    }
    histogram(c, &h);
    assert_true(fabs(h.sum_seconds - 0.123) < 1e-12);
}

static void quantiles_lie_in_their_bucket(void **state)
{
    struct counted *c = *state;
    struct metrics_histogram h, later, since;

    histogram(c, &h);
    assert_true(metrics_quantile(&h, 0.5) < 0); /* nothing to say */
    for (int i = 0; i < 90; i++) {
        observe(c, 0.0003);
    }
    for (int i = 0; i < 10; i++) {
        observe(c, 3);
    }
    histogram(c, &h);
    assert_true(metrics_quantile(&h, 0.5) > 0.00025 && metrics_quantile(&h, 0.5) <= 0.0005);
    assert_true(metrics_quantile(&h, 0.99) > 2.5 && metrics_quantile(&h, 0.99) <= 5);
    assert_true(metrics_quantile(&h, 1) <= 5);
    assert_true(metrics_quantile(&h, 2) < 0);
    observe(c, 10000); /* past the last bound */
    histogram(c, &later);
    metrics_histogram_since(&later, &h, &since);
    assert_int_equal(since.count, 1);
    assert_true(fabs(metrics_quantile(&since, 0.5) - 10) < 1e-9);
    metrics_histogram_since(&h, &later, &since); /* garbage went backwards */
    assert_int_equal(since.count, 0);
}

static void slots_add_up_and_the_latest_run_wins(void **state)
{
    struct counted *c = *state;
    struct fixture f;

    fixture_setup(&f);
    struct shm *a = fixture_attach(&f, WORKER(0));
    struct shm *b = fixture_attach(&f, WORKER(1));
    metrics_add(metrics_of(a), METRIC_locks_held, 0, 3);
    metrics_add(metrics_of(b), METRIC_locks_held, 0, 4);
    metrics_loop_ran(metrics_of(a), LABEL_LOOP_CLAIM, 9000);
    metrics_loop_ran(metrics_of(b), LABEL_LOOP_CLAIM, 5000);
    metrics_snapshot_all(f.supervisor, c->snapshot);
    assert_int_equal(metrics_value(c->snapshot, METRIC_locks_held, 0), 7);
    assert_int_equal(
        metrics_value(c->snapshot, METRIC_loop_last_run_timestamp_seconds, LABEL_LOOP_CLAIM), 9);
    metrics_snapshot_slot(f.supervisor, WORKER(1), c->snapshot);
    assert_int_equal(metrics_value(c->snapshot, METRIC_locks_held, 0), 4);
    metrics_snapshot_slot(f.supervisor, 63, c->snapshot);
    assert_int_equal(metrics_value(c->snapshot, METRIC_locks_held, 0), 0);
    shm_destroy(&a);
    shm_destroy(&b);
    fixture_teardown(&f);
}

static void counters_survive_a_restart_in_the_same_slot(void **state)
{
    struct counted *c = *state;
    struct fixture f;

    fixture_setup(&f);
    for (int life = 0; life < 3; life++) {
        struct shm *worker = fixture_attach(&f, WORKER(0));
        metrics_add(metrics_of(worker), METRIC_verifications_total, LABEL_VERDICT_ABSENT, 10);
        metrics_add(metrics_of(worker), METRIC_locks_held, 0, 2);
        shm_destroy(&worker);
    }
    metrics_snapshot_all(f.supervisor, c->snapshot);
    assert_int_equal(metrics_value(c->snapshot, METRIC_verifications_total, LABEL_VERDICT_ABSENT),
                     30);
    assert_int_equal(metrics_value(c->snapshot, METRIC_locks_held, 0),
                     2); /* the present life's only */
    fixture_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_counter_counts_under_its_label_only, setup, teardown),
        cmocka_unit_test_setup_teardown(cells_of_different_series_never_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(labels_out_of_range_go_to_other_or_nowhere, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(two_labels_have_a_cell_for_each_pair, setup, teardown),
        cmocka_unit_test_setup_teardown(a_status_is_counted_under_its_number_or_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_operation_works_on_its_own_types_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_is_counted_without_metrics, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bound_belongs_to_its_bucket, setup, teardown),
        cmocka_unit_test(bounds_grow_and_their_texts_say_the_same),
        cmocka_unit_test_setup_teardown(absurd_durations_are_counted_as_the_nearest_sane_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(sums_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(quantiles_lie_in_their_bucket, setup, teardown),
        cmocka_unit_test_setup_teardown(slots_add_up_and_the_latest_run_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(counters_survive_a_restart_in_the_same_slot, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
