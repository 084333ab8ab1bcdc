/* Counting. One relaxed add per count; a label out of range is put right or ignored here, so that
 * no caller has to. */
#include "common/shm/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/shm/shm_private.h"

#define SECONDS_MAX 3.2e9 /* a century; in nanoseconds it still fits */

struct metrics *metrics_create_private(void)
{
    struct metrics *m = calloc(1, sizeof(*m));
    if (!m) {
        return NULL;
    }
    m->block = aligned_alloc(alignof(struct metrics_block), sizeof(*m->block));
    if (!m->block) {
        metrics_destroy(&m);
        return NULL;
    }
    memset((void *)m->block, 0, sizeof(*m->block));
    return m;
}

void metrics_destroy(struct metrics **m)
{
    if (*m) {
        free((*m)->block);
        free(*m);
        *m = NULL;
    }
}

/* The first cell of a series, or NULL if there is no such one. */
static _Atomic uint64_t *find_cells(struct metrics *m, enum metric metric, size_t label)
{
    const struct metrics_desc *desc = metrics_desc(metric);

    if (!m || !desc) {
        return NULL;
    }
    /* A set with one label whose last place is `other`. (Two labels come through helpers that do
     * the same.) */
    if (label >= desc->label_count && desc->labels->dims[0].source != LABEL_NAMES_FIXED &&
        !desc->labels->dims[1].key) {
        label = desc->label_count - 1;
    }
    if (label >= desc->label_count) {
        return NULL;
    }
    return (_Atomic uint64_t *)(void *)m->block + desc->first_cell + label * desc->width;
}

static bool has_type(enum metric metric, enum metric_type type)
{
    const struct metrics_desc *desc = metrics_desc(metric);

    return desc && desc->type == type;
}

static bool is_gauge(enum metric metric)
{
    return has_type(metric, METRIC_TYPE_GAUGE_SUM) || has_type(metric, METRIC_TYPE_GAUGE_MAX);
}

static void add_cell(_Atomic uint64_t *cell, uint64_t n)
{
    if (cell) {
        atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
    }
}

void metrics_add(struct metrics *m, enum metric metric, size_t label, uint64_t n)
{
    if (!has_type(metric, METRIC_TYPE_HISTOGRAM)) {
        add_cell(find_cells(m, metric, label), n);
    }
}

void metrics_sub(struct metrics *m, enum metric metric, size_t label, uint64_t n)
{
    if (is_gauge(metric)) {
        add_cell(find_cells(m, metric, label), UINT64_C(0) - n);
    }
}

void metrics_set(struct metrics *m, enum metric metric, size_t label, uint64_t value)
{
    _Atomic uint64_t *cell = find_cells(m, metric, label);

    if (cell && is_gauge(metric)) {
        atomic_store_explicit(cell, value, memory_order_relaxed);
    }
}

static void observe(struct metrics *m, enum metric metric, size_t label, uint64_t ns)
{
    _Atomic uint64_t *cells = find_cells(m, metric, label);
    size_t bucket = 0;

    if (!cells || !has_type(metric, METRIC_TYPE_HISTOGRAM)) {
        return;
    }
    const struct metrics_buckets *buckets = metrics_desc(metric)->buckets;

    while (bucket < buckets->count - 1 && ns > buckets->bounds_us[bucket] * 1000) {
        bucket++;
    }
    add_cell(&cells[bucket], 1);
    add_cell(&cells[buckets->count], ns);
}

void metrics_observe_seconds(struct metrics *m, enum metric metric, size_t label, double seconds)
{
    if (!(seconds > 0)) { /* NaN, too */
        seconds = 0;
    }
    observe(m, metric, label, (uint64_t)llround(fmin(seconds, SECONDS_MAX) * 1e9));
}

void metrics_observe_ns(struct metrics *m, enum metric metric, size_t label, int64_t ns)
{
    const int64_t most = (int64_t)(SECONDS_MAX * 1e9);

    observe(m, metric, label, (uint64_t)(ns < 0 ? 0 : ns > most ? most : ns));
}

/* ---- two labels ---- */

static void add_pair(struct metrics *m, enum metric metric, size_t first, size_t second, uint64_t n)
{
    const struct metrics_label_dim *dims = metrics_desc(metric)->labels->dims;

    if (first >= dims[0].count && dims[0].source != LABEL_NAMES_FIXED) {
        first = dims[0].count - 1;
    }
    if (first < dims[0].count && second < dims[1].count) {
        metrics_add(m, metric, first * dims[1].count + second, n);
    }
}

void metrics_add_delivery(struct metrics *m, size_t kind, enum outcome outcome, uint64_t n)
{
    add_pair(m, METRIC_deliveries_total, kind, (size_t)outcome, n);
}

void metrics_add_store_request(struct metrics *m, size_t script, enum label_store_result result,
                               uint64_t n)
{
    add_pair(m, METRIC_store_requests_total, script, (size_t)result, n);
}

static enum label_http_status label_of_status(unsigned http_status)
{
    const struct metrics_label_set *set = metrics_desc(METRIC_http_requests_total)->labels;

    /* The names are the numbers: no second list to keep in step. */
    for (size_t i = 0; i < LABEL_HTTP_STATUS_OTHER; i++) {
        if (strtoul(set->dims[1].names[i], NULL, 10) == http_status) {
            return (enum label_http_status)i;
        }
    }
    return LABEL_HTTP_STATUS_OTHER;
}

void metrics_add_http_request(struct metrics *m, size_t route, unsigned http_status, uint64_t n)
{
    add_pair(m, METRIC_http_requests_total, route, (size_t)label_of_status(http_status), n);
}

void metrics_add_restart(struct metrics *m, enum label_role role, enum label_death_reason reason,
                         uint64_t n)
{
    add_pair(m, METRIC_process_restarts_total, (size_t)role, (size_t)reason, n);
}

void metrics_loop_ran(struct metrics *m, enum label_loop loop, int64_t wall_ms)
{
    metrics_set(m, METRIC_loop_last_run_timestamp_seconds, (size_t)loop,
                wall_ms < 0 ? 0 : (uint64_t)wall_ms / 1000);
}

void metrics_add_cell(struct metrics *m, enum metric metric, size_t cell, uint64_t n)
{
    const struct metrics_desc *desc = metrics_desc(metric);

    if (m && desc && cell < metrics_cell_count(desc)) {
        atomic_fetch_add_explicit((_Atomic uint64_t *)(void *)m->block + desc->first_cell + cell, n,
                                  memory_order_relaxed);
    }
}

void metrics_reset_gauges(struct metrics *m)
{
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);
        for (size_t label = 0; desc->type == METRIC_TYPE_GAUGE_SUM && label < desc->label_count;
             label++) {
            metrics_set(m, (enum metric)metric, label, 0);
        }
    }
}
