/* Counting, and the table that describes every cell. One relaxed add per count; a label out of
 * range is put right or ignored here, so that no caller has to. */
#include "common/shm/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings.h"
#include "common/core/keys.h"
#include "common/shm/shm_private.h"

static_assert(KIND_COUNT_MAX == LABEL_NAMED_MAX, "a place for each kind");
static_assert(sizeof(struct metrics_block) == METRICS_CELLS * sizeof(uint64_t), "cells all over");

#define SECONDS_MAX 3.2e9 /* a century; in nanoseconds it still fits */

/* ---- the table ---- */

#define NAME_ROW(set, id, text) [LABEL_##set##_##id] = text,
static const char *const names_accept_result[] = {LABEL_ROWS_ACCEPT_RESULT(NAME_ROW)};
static const char *const names_verdict[] = {LABEL_ROWS_VERDICT(NAME_ROW)};
static const char *const names_sweep_outcome[] = {LABEL_ROWS_SWEEP_OUTCOME(NAME_ROW)};
static const char *const names_loop[] = {LABEL_ROWS_LOOP(NAME_ROW)};
static const char *const names_recovery_reason[] = {LABEL_ROWS_RECOVERY_REASON(NAME_ROW)};
static const char *const names_ring[] = {LABEL_ROWS_RING(NAME_ROW)};
static const char *const names_store_result[] = {LABEL_ROWS_STORE_RESULT(NAME_ROW)};
static const char *const names_http_status[] = {LABEL_ROWS_HTTP_STATUS(NAME_ROW)};
static const char *const names_role[] = {LABEL_ROWS_ROLE(NAME_ROW)};
static const char *const names_death_reason[] = {LABEL_ROWS_DEATH_REASON(NAME_ROW)};
#define OUTCOME(id, name) [OUTCOME_##id] = name,
static const char *const names_outcome[] = {
#include "common/core/lifecycle.def"
};

#define DIM_NONE                                                                                   \
    {                                                                                              \
        .key = NULL, .count = 1                                                                    \
    }
#define DIM_FIXED(label, set, list)                                                                \
    {                                                                                              \
        .key = label, .count = LABELS_##set, .source = LABEL_NAMES_FIXED, .names = list            \
    }
#define DIM_NAMED(label, from)                                                                     \
    {                                                                                              \
        .key = label, .count = LABEL_NAMED_MAX + 1, .source = from                                 \
    }

static const struct metrics_label_set set_NONE = {.dims = {DIM_NONE, DIM_NONE}};
static const struct metrics_label_set set_ACCEPT_RESULT = {
    .dims = {DIM_FIXED("result", ACCEPT_RESULT, names_accept_result), DIM_NONE}};
static const struct metrics_label_set set_KIND = {
    .dims = {DIM_NAMED("kind", LABEL_NAMES_KINDS), DIM_NONE}};
static const struct metrics_label_set set_KIND_OUTCOME = {
    .dims = {DIM_NAMED("kind", LABEL_NAMES_KINDS), DIM_FIXED("outcome", OUTCOME, names_outcome)}};
static const struct metrics_label_set set_VERDICT = {
    .dims = {DIM_FIXED("verdict", VERDICT, names_verdict), DIM_NONE}};
static const struct metrics_label_set set_SWEEP_OUTCOME = {
    .dims = {DIM_FIXED("outcome", SWEEP_OUTCOME, names_sweep_outcome), DIM_NONE}};
/* Sparse: a loop that never ran has no last time. */
static const struct metrics_label_set set_LOOP = {
    .dims = {DIM_FIXED("loop", LOOP, names_loop), DIM_NONE}, .is_sparse = 1};
static const struct metrics_label_set set_RECOVERY_REASON = {
    .dims = {DIM_FIXED("reason", RECOVERY_REASON, names_recovery_reason), DIM_NONE}};
static const struct metrics_label_set set_RING = {
    .dims = {DIM_FIXED("ring", RING, names_ring), DIM_NONE}};
static const struct metrics_label_set set_SCRIPT_RESULT = {
    .dims = {DIM_NAMED("script", LABEL_NAMES_SCRIPTS),
             DIM_FIXED("result", STORE_RESULT, names_store_result)}};
/* Sparse: most routes never give most answers. */
static const struct metrics_label_set set_ROUTE_STATUS = {
    .dims = {DIM_NAMED("route", LABEL_NAMES_ROUTES),
             DIM_FIXED("status", HTTP_STATUS, names_http_status)},
    .is_sparse = 1};
static const struct metrics_label_set set_ROLE_REASON = {
    .dims = {DIM_FIXED("role", ROLE, names_role),
             DIM_FIXED("reason", DEATH_REASON, names_death_reason)}};

static const struct metrics_desc descs[METRIC_COUNT] = {
#define METRIC(kind_of, id, label_set, text)                                                       \
    [METRIC_##id] = {.name = #id,                                                                  \
                     .help = text,                                                                 \
                     .type = METRIC_TYPE_##kind_of,                                                \
                     .first_cell = offsetof(struct metrics_block, id) / sizeof(uint64_t),          \
                     .label_count = LABELS_##label_set,                                            \
                     .labels = &set_##label_set},
#include "common/shm/metrics.def"
};

const struct metrics_desc *metrics_desc(enum metric metric)
{
    return (unsigned)metric < METRIC_COUNT ? &descs[metric] : NULL;
}

static const uint64_t bucket_bounds_us[] = {
#define BOUND_ROW(us, text) us,
    METRICS_BUCKET_ROWS(BOUND_ROW)};
static const char *const bucket_texts[] = {
#define TEXT_ROW(us, text) text,
    METRICS_BUCKET_ROWS(TEXT_ROW) "+Inf"};
static_assert(sizeof(bucket_texts) / sizeof(bucket_texts[0]) == METRICS_BUCKETS, "a text for each");

const char *metrics_bucket_text(size_t i)
{
    return i < METRICS_BUCKETS ? bucket_texts[i] : "+Inf";
}

static uint64_t hash_words(uint64_t hash, uint64_t a, uint64_t b)
{
    const uint64_t words[] = {hash, a, b};

    return fnv1a64(words, sizeof(words));
}

static uint64_t hash_dim(uint64_t hash, const struct metrics_label_dim *dim)
{
    hash = hash_words(hash, dim->count, (uint64_t)dim->source);
    for (size_t i = 0; dim->names && i < dim->count; i++) {
        hash = hash_words(hash, fnv1a64(dim->names[i], strlen(dim->names[i])), i);
    }
    return hash;
}

uint64_t metrics_fingerprint(void)
{
    uint64_t hash = fnv1a64(bucket_bounds_us, sizeof(bucket_bounds_us));

    for (size_t i = 0; i < METRIC_COUNT; i++) {
        hash = hash_words(hash, fnv1a64(descs[i].name, strlen(descs[i].name)),
                          (uint64_t)descs[i].type);
        hash = hash_words(hash, descs[i].first_cell, descs[i].label_count);
        hash = hash_dim(hash, &descs[i].labels->dims[0]);
        hash = hash_dim(hash, &descs[i].labels->dims[1]);
    }
    return hash;
}

/* ---- counting ---- */

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

static size_t cells_of(enum metric_type type)
{
    return type == METRIC_TYPE_HISTOGRAM ? CELLS_HISTOGRAM : 1;
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
        label = LABEL_NAMED_OTHER;
    }
    if (label >= desc->label_count) {
        return NULL;
    }
    return (_Atomic uint64_t *)(void *)m->block + desc->first_cell + label * cells_of(desc->type);
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
    while (bucket < METRICS_BUCKETS - 1 && ns > bucket_bounds_us[bucket] * 1000) {
        bucket++;
    }
    add_cell(&cells[bucket], 1);
    add_cell(&cells[METRICS_BUCKETS], ns);
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
        first = LABEL_NAMED_OTHER;
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
    /* The names are the numbers: no second list to keep in step. */
    for (size_t i = 0; i < LABEL_HTTP_STATUS_OTHER; i++) {
        if (strtoul(names_http_status[i], NULL, 10) == http_status) {
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
        const struct metrics_desc *desc = &descs[metric];
        for (size_t label = 0; desc->type == METRIC_TYPE_GAUGE_SUM && label < desc->label_count;
             label++) {
            metrics_set(m, (enum metric)metric, label, 0);
        }
    }
}
