/* The text for Prometheus: the whole of it read back line by line, the escapes, and the labels that
 * callers name. */
#include <errno.h>
#include <math.h>

#include "common/core/buf.h"
#include "common/shm/exposition.h"
#include "tests/unit/shm_fixture.h"

struct text {
    struct metrics *m;
    struct metrics_snapshot *snapshot;
    struct buf out;
};

static int setup(void **state)
{
    struct text *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    t->m = metrics_create_private();
    t->snapshot = calloc(1, sizeof(*t->snapshot));
    assert_non_null(t->m);
    assert_non_null(t->snapshot);
    buf_init(&t->out, 1 << 20);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct text *t = *state;

    metrics_destroy(&t->m);
    free(t->snapshot);
    buf_done(&t->out);
    free(t);
    return 0;
}

static const char *const kinds[] = {"prompt", "mail"};
static const char *const scripts[] = {"accept"};
static const char *const routes[] = {"/v1/entries", "/metrics"};
static const struct exposition_names names = {
    .kinds = {kinds, 2},
    .scripts = {scripts, 1},
    .routes = {routes, 2},
};

static void expose(struct text *t, const struct exposition_names *with)
{
    buf_reset(&t->out);
    metrics_snapshot_of(t->m, t->snapshot);
    assert_int_equal(metrics_expose_snapshot(t->snapshot, with, &t->out), 0);
}

/* Whether `line` (without its line feed) stands there as a whole line, exactly once. */
static bool has_line(const struct buf *out, const char *line)
{
    const size_t len = strlen(line);
    int found = 0;

    for (const char *at = out->bytes; (at = strstr(at, line)) != NULL; at += len) {
        found += (at == out->bytes || at[-1] == '\n') && at[len] == '\n';
    }
    return found == 1;
}

static void every_metric_has_help_and_type_once_and_in_that_order(void **state)
{
    struct text *t = *state;

    expose(t, &names);
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);
        const char *type = desc->type == METRIC_TYPE_COUNTER     ? "counter"
                           : desc->type == METRIC_TYPE_HISTOGRAM ? "histogram"
                                                                 : "gauge";
        char line[256];
        (void)snprintf(line, sizeof(line), "# HELP outbox_%s %s\n# TYPE outbox_%s %s", desc->name,
                       desc->help, desc->name, type);
        assert_true(has_line(&t->out, line));
        /* What the metrics linter wants of names. */
        const size_t len = strlen(desc->name);
        const bool ends_in_total = len > 6 && strcmp(desc->name + len - 6, "_total") == 0;
        assert_int_equal(ends_in_total, desc->type == METRIC_TYPE_COUNTER);
    }
}

static void series_carry_their_labels(void **state)
{
    struct text *t = *state;

    metrics_add(t->m, METRIC_accepts_total, LABEL_ACCEPT_RESULT_SESSION_FULL, 35);
    metrics_add(t->m, METRIC_locks_held, 0, 3);
    metrics_add_delivery(t->m, 1, OUTCOME_PRIOR_PENDING, 7);
    metrics_add_store_request(t->m, 0, LABEL_STORE_RESULT_TIMEOUT, 2);
    metrics_add_http_request(t->m, 0, 429, 9);
    metrics_add_restart(t->m, LABEL_ROLE_WORKER, LABEL_DEATH_REASON_SIGNAL, 1);
    metrics_loop_ran(t->m, LABEL_LOOP_DELAYED, 1796083200999);
    expose(t, &names);
    assert_true(has_line(&t->out, "outbox_accepts_total{result=\"session_full\"} 35"));
    assert_true(has_line(&t->out, "outbox_accepts_total{result=\"accepted\"} 0"));
    assert_true(has_line(&t->out, "outbox_locks_held 3"));
    assert_true(
        has_line(&t->out, "outbox_deliveries_total{kind=\"mail\",outcome=\"prior-pending\"} 7"));
    assert_true(
        has_line(&t->out, "outbox_deliveries_total{kind=\"prompt\",outcome=\"confirmed\"} 0"));
    assert_true(
        has_line(&t->out, "outbox_store_requests_total{script=\"accept\",result=\"timeout\"} 2"));
    assert_true(
        has_line(&t->out, "outbox_http_requests_total{route=\"/v1/entries\",status=\"429\"} 9"));
    assert_true(
        has_line(&t->out, "outbox_process_restarts_total{role=\"worker\",reason=\"signal\"} 1"));
    assert_true(
        has_line(&t->out, "outbox_loop_last_run_timestamp_seconds{loop=\"delayed\"} 1796083200"));
    /* Left out until they count: `other`, most statuses of most routes, loops that never ran. */
    assert_null(strstr(t->out.bytes, "kind=\"other\""));
    assert_null(strstr(t->out.bytes, "route=\"/metrics\""));
    assert_null(strstr(t->out.bytes, "loop=\"claim\""));
}

static void a_histogram_is_cumulative_and_ends_in_its_count(void **state)
{
    struct text *t = *state;

    metrics_observe_seconds(t->m, METRIC_delivery_duration_seconds, 0, 0.002);
    metrics_observe_seconds(t->m, METRIC_delivery_duration_seconds, 0, 0.75);
    metrics_observe_seconds(t->m, METRIC_delivery_duration_seconds, 0, 5000);
    expose(t, &names);
    assert_true(has_line(
        &t->out, "outbox_delivery_duration_seconds_bucket{kind=\"prompt\",le=\"0.001\"} 0"));
    assert_true(has_line(
        &t->out, "outbox_delivery_duration_seconds_bucket{kind=\"prompt\",le=\"0.0025\"} 1"));
    assert_true(
        has_line(&t->out, "outbox_delivery_duration_seconds_bucket{kind=\"prompt\",le=\"1\"} 2"));
    assert_true(
        has_line(&t->out, "outbox_delivery_duration_seconds_bucket{kind=\"prompt\",le=\"600\"} 2"));
    assert_true(has_line(&t->out,
                         "outbox_delivery_duration_seconds_bucket{kind=\"prompt\",le=\"+Inf\"} 3"));
    assert_true(
        has_line(&t->out, "outbox_delivery_duration_seconds_sum{kind=\"prompt\"} 5000.752000000"));
    assert_true(has_line(&t->out, "outbox_delivery_duration_seconds_count{kind=\"prompt\"} 3"));
    assert_true(has_line(&t->out, "outbox_accept_duration_seconds_bucket{le=\"+Inf\"} 0"));
}

static void places_without_a_name_are_added_to_other(void **state)
{
    struct text *t = *state;

    metrics_add_delivery(t->m, 2, OUTCOME_CONFIRMED, 1); /* two names were given */
    metrics_add_delivery(t->m, 31, OUTCOME_CONFIRMED, 2);
    metrics_add_delivery(t->m, 99, OUTCOME_CONFIRMED, 4);
    metrics_observe_ns(t->m, METRIC_delivery_duration_seconds, 20, 1);
    expose(t, &names);
    assert_true(
        has_line(&t->out, "outbox_deliveries_total{kind=\"other\",outcome=\"confirmed\"} 7"));
    assert_true(has_line(&t->out, "outbox_delivery_duration_seconds_count{kind=\"other\"} 1"));
    expose(t, NULL); /* no names at all: everything is `other` */
    assert_true(
        has_line(&t->out, "outbox_deliveries_total{kind=\"other\",outcome=\"confirmed\"} 7"));
}

static void a_series_is_written_once_even_if_names_repeat(void **state)
{
    struct text *t = *state;
    const char *const bad[] = {"a", "other", "a", NULL, "b", "", ""};
    const struct exposition_names repeated = {.kinds = {bad, 7}};

    for (size_t i = 0; i < 7; i++) {
        metrics_add_delivery(t->m, i, OUTCOME_FAILED, (uint64_t)1 << i);
    }
    expose(t, &repeated);
    assert_true(has_line(&t->out, "outbox_deliveries_total{kind=\"a\",outcome=\"failed\"} 5"));
    assert_true(has_line(&t->out, "outbox_deliveries_total{kind=\"other\",outcome=\"failed\"} 10"));
    assert_true(has_line(&t->out, "outbox_deliveries_total{kind=\"b\",outcome=\"failed\"} 16"));
    assert_true(has_line(&t->out, "outbox_deliveries_total{kind=\"\",outcome=\"failed\"} 96"));
}

static void label_values_are_escaped_and_always_utf8(void **state)
{
    struct text *t = *state;
    const char *const odd[] = {"a\"b\\c\nd", "\xc3\xa9\xff\xc0\x80", "\xed\xa0\x80"};
    const struct exposition_names with = {.kinds = {odd, 3}};

    expose(t, &with);
    assert_true(
        has_line(&t->out, "outbox_delivery_duration_seconds_count{kind=\"a\\\"b\\\\c\\nd\"} 0"));
    assert_true(has_line(
        &t->out, "outbox_delivery_duration_seconds_count{kind=\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
                 "\xef\xbf\xbd\"} 0"));
}

static void more_names_than_places_are_not_read(void **state)
{
    struct text *t = *state;
    const char *const only[LABEL_KIND_MAX] = {"k"};
    const struct exposition_names with = {.kinds = {only, 1000000}};

    metrics_add_delivery(t->m, LABEL_KIND_OTHER, OUTCOME_CONFIRMED, 1);
    expose(t, &with);
    assert_true(
        has_line(&t->out, "outbox_deliveries_total{kind=\"other\",outcome=\"confirmed\"} 1"));
}

static void corrupt_cells_give_wrong_numbers_and_monotone_buckets(void **state)
{
    struct text *t = *state;

    memset((void *)t->m->block, 0xff, sizeof(*t->m->block));
    expose(t, &names);
    assert_true(has_line(&t->out, "outbox_locks_held 18446744073709551615"));
    assert_true(has_line(
        &t->out, "outbox_accept_duration_seconds_bucket{le=\"0.0001\"} 18446744073709551615"));
    assert_true(has_line(&t->out, "outbox_accept_duration_seconds_count 18446744073709551615"));
    assert_true(has_line(&t->out, "outbox_accept_duration_seconds_sum 18446744073.709551615"));
    assert_true(has_line(
        &t->out,
        "outbox_deliveries_total{kind=\"other\",outcome=\"failed\"} 18446744073709551615"));
}

static void processes_and_the_build_are_shown(void **state)
{
    struct text *t = *state;
    struct fixture f;

    fixture_setup(&f);
    shm_process_begin(f.supervisor, 0, SHM_ROLE_SUPERVISOR, 1, 1);
    shm_process_set_state(f.supervisor, 0, SHM_PROCESS_READY);
    shm_process_begin(f.supervisor, API(0), SHM_ROLE_API, 2, 2);
    shm_process_begin(f.supervisor, WORKER(0), SHM_ROLE_WORKER, 3, 3);
    shm_process_set_state(f.supervisor, WORKER(0), SHM_PROCESS_DRAINING);
    shm_process_begin(f.supervisor, WORKER(2), SHM_ROLE_WORKER, 4, 4);
    shm_process_end(f.supervisor, WORKER(2));
    shm_process_set_state(f.supervisor, WORKER(2), SHM_PROCESS_WAITING);
    shm_process_set_restart(f.supervisor, WORKER(2),
                            &(struct shm_restart){.deaths = SHM_LOOP_DEATHS});
    shm_process_begin(f.supervisor, API(1), SHM_ROLE_API, 5, 5);
    shm_process_end(f.supervisor, API(1));
    assert_int_equal(metrics_expose(f.supervisor, &names, &t->out), 0);
    assert_true(has_line(&t->out, "outbox_process_up{role=\"supervisor\",slot=\"0\"} 1"));
    assert_true(has_line(&t->out, "outbox_process_up{role=\"api\",slot=\"1\"} 0")); /* starting */
    assert_true(has_line(&t->out, "outbox_process_up{role=\"worker\",slot=\"4\"} 1"));
    assert_true(has_line(&t->out, "outbox_process_up{role=\"worker\",slot=\"6\"} 0")); /* died */
    assert_true(has_line(&t->out, "outbox_process_crash_looping{role=\"worker\",slot=\"6\"} 1"));
    assert_true(has_line(&t->out, "outbox_process_crash_looping{role=\"worker\",slot=\"4\"} 0"));
    assert_null(strstr(t->out.bytes, "slot=\"2\"")); /* ended, and nobody is to be there */
    assert_null(strstr(t->out.bytes, "slot=\"5\"")); /* never used */
    assert_non_null(strstr(t->out.bytes, "\noutbox_build_info{version=\""));
    fixture_teardown(&f);
}

static void callers_add_gauges_of_their_own(void **state)
{
    struct text *t = *state;
    const struct exposition_sample ups[] = {
        {{"worker", "4"}, 12}, {{"odd\\\"\n", "5"}, (double)NAN}, {{"", "6"}, (double)INFINITY}};
    const struct exposition_sample age = {.value = 1.25};
    char expected[512];

    assert_int_equal(exposition_gauge(&t->out, SCRAPED_process_up, ups, 3), 0);
    assert_int_equal(exposition_gauge(&t->out, SCRAPED_store_up, &age, 1), 0);
    (void)snprintf(expected, sizeof(expected),
                   "# HELP outbox_process_up %s\n"
                   "# TYPE outbox_process_up gauge\n"
                   "outbox_process_up{role=\"worker\",slot=\"4\"} 12\n"
                   "outbox_process_up{role=\"odd\\\\\\\"\\n\",slot=\"5\"} NaN\n"
                   "outbox_process_up{role=\"\",slot=\"6\"} +Inf\n"
                   "# HELP outbox_store_up %s\n"
                   "# TYPE outbox_store_up gauge\n"
                   "outbox_store_up 1.25\n",
                   scraped_desc(SCRAPED_process_up)->help, scraped_desc(SCRAPED_store_up)->help);
    assert_string_equal(t->out.bytes, expected);
}

static void a_buffer_that_is_too_small_is_told(void **state)
{
    struct text *t = *state;
    struct buf small;

    buf_init(&small, 1000);
    metrics_snapshot_of(t->m, t->snapshot);
    assert_int_equal(metrics_expose_snapshot(t->snapshot, &names, &small), -ENOBUFS);
    buf_done(&small);
}

static void the_largest_text_fits_in_a_megabyte(void **state)
{
    struct text *t = *state;
    char texts[LABEL_SCRIPT_MAX][65];
    const char *all[LABEL_SCRIPT_MAX];

    for (int i = 0; i < LABEL_SCRIPT_MAX; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%064d", i);
        all[i] = texts[i];
    }
    const struct exposition_names with = {.kinds = {all, LABEL_KIND_MAX},
                                          .scripts = {all, LABEL_SCRIPT_MAX},
                                          .routes = {all, LABEL_ROUTE_MAX}};
    memset((void *)t->m->block, 0xff, sizeof(*t->m->block));
    expose(t, &with);
    assert_true(t->out.len < 900000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_metric_has_help_and_type_once_and_in_that_order),
        TEST(series_carry_their_labels),
        TEST(a_histogram_is_cumulative_and_ends_in_its_count),
        TEST(places_without_a_name_are_added_to_other),
        TEST(a_series_is_written_once_even_if_names_repeat),
        TEST(label_values_are_escaped_and_always_utf8),
        TEST(more_names_than_places_are_not_read),
        TEST(corrupt_cells_give_wrong_numbers_and_monotone_buckets),
        TEST(processes_and_the_build_are_shown),
        TEST(callers_add_gauges_of_their_own),
        TEST(a_buffer_that_is_too_small_is_told),
        TEST(the_largest_text_fits_in_a_megabyte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
