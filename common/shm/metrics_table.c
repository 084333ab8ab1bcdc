/* The table that describes every cell, expanded from metrics.def and metrics_layout.h: names, help,
 * labels, buckets, and the fingerprint by which two programs know that they agree. Constant data.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "common/base/settings.h"
#include "common/core/circuit.h"
#include "common/core/keys.h"
#include "common/shm/metrics.h"

static_assert(KIND_COUNT_MAX <= LABEL_KIND_MAX, "a place for each kind");
static_assert((int)LABELS_CIRCUIT == (int)CIRCUIT_STATE_COUNT, "a label for each state");
static_assert(sizeof(struct metrics_block) == METRICS_CELLS * sizeof(uint64_t), "cells all over");

/* ---- labels ---- */

#define NAME_ROW(set, id, text) [LABEL_##set##_##id] = text,
static const char *const names_accept_result[] = {LABEL_ROWS_ACCEPT_RESULT(NAME_ROW)};
static const char *const names_verdict[] = {LABEL_ROWS_VERDICT(NAME_ROW)};
static const char *const names_sweep_outcome[] = {LABEL_ROWS_SWEEP_OUTCOME(NAME_ROW)};
static const char *const names_circuit[] = {LABEL_ROWS_CIRCUIT(NAME_ROW)};
static const char *const names_hold[] = {LABEL_ROWS_HOLD(NAME_ROW)};
static const char *const names_loop[] = {LABEL_ROWS_LOOP(NAME_ROW)};
static const char *const names_recovery_reason[] = {LABEL_ROWS_RECOVERY_REASON(NAME_ROW)};
static const char *const names_ring[] = {LABEL_ROWS_RING(NAME_ROW)};
static const char *const names_store_result[] = {LABEL_ROWS_STORE_RESULT(NAME_ROW)};
static const char *const names_http_status[] = {LABEL_ROWS_HTTP_STATUS(NAME_ROW)};
static const char *const names_http_limit[] = {LABEL_ROWS_HTTP_LIMIT(NAME_ROW)};
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
#define DIM_NAMED(label, set)                                                                      \
    {                                                                                              \
        .key = label, .count = LABELS_##set, .source = LABEL_NAMES_##set                           \
    }

static const struct metrics_label_set set_NONE = {.dims = {DIM_NONE, DIM_NONE}};
static const struct metrics_label_set set_ACCEPT_RESULT = {
    .dims = {DIM_FIXED("result", ACCEPT_RESULT, names_accept_result), DIM_NONE}};
static const struct metrics_label_set set_KIND = {.dims = {DIM_NAMED("kind", KIND), DIM_NONE}};
static const struct metrics_label_set set_KIND_OUTCOME = {
    .dims = {DIM_NAMED("kind", KIND), DIM_FIXED("outcome", OUTCOME, names_outcome)}};
static const struct metrics_label_set set_VERDICT = {
    .dims = {DIM_FIXED("verdict", VERDICT, names_verdict), DIM_NONE}};
static const struct metrics_label_set set_SWEEP_OUTCOME = {
    .dims = {DIM_FIXED("outcome", SWEEP_OUTCOME, names_sweep_outcome), DIM_NONE}};
static const struct metrics_label_set set_CIRCUIT = {
    .dims = {DIM_FIXED("to", CIRCUIT, names_circuit), DIM_NONE}};
static const struct metrics_label_set set_HOLD = {
    .dims = {DIM_FIXED("reason", HOLD, names_hold), DIM_NONE}};
/* Sparse: a loop that never ran has no last time. */
static const struct metrics_label_set set_LOOP = {
    .dims = {DIM_FIXED("loop", LOOP, names_loop), DIM_NONE}, .is_sparse = 1};
static const struct metrics_label_set set_RECOVERY_REASON = {
    .dims = {DIM_FIXED("reason", RECOVERY_REASON, names_recovery_reason), DIM_NONE}};
static const struct metrics_label_set set_RING = {
    .dims = {DIM_FIXED("ring", RING, names_ring), DIM_NONE}};
static const struct metrics_label_set set_SCRIPT_RESULT = {
    .dims = {DIM_NAMED("script", SCRIPT), DIM_FIXED("result", STORE_RESULT, names_store_result)}};
/* Sparse: most routes never give most answers. */
static const struct metrics_label_set set_ROUTE_STATUS = {
    .dims = {DIM_NAMED("route", ROUTE), DIM_FIXED("status", HTTP_STATUS, names_http_status)},
    .is_sparse = 1};
static const struct metrics_label_set set_HTTP_LIMIT = {
    .dims = {DIM_FIXED("limit", HTTP_LIMIT, names_http_limit), DIM_NONE}};
static const struct metrics_label_set set_ROLE_REASON = {
    .dims = {DIM_FIXED("role", ROLE, names_role),
             DIM_FIXED("reason", DEATH_REASON, names_death_reason)}};

/* ---- buckets ---- */

#define BOUND_ROW(us, text) us,
#define TEXT_ROW(us, text)  text,
#define BUCKET_SET(set)                                                                            \
    static const uint64_t bounds_us_##set[] = {BUCKET_ROWS_##set(BOUND_ROW)};                      \
    static const char *const bucket_texts_##set[] = {BUCKET_ROWS_##set(TEXT_ROW) "+Inf"};          \
    static_assert(sizeof(bucket_texts_##set) / sizeof(char *) == BUCKETS_##set,                    \
                  "a text for each");                                                              \
    static_assert(BUCKETS_##set <= BUCKETS_MAX, "room in struct metrics_histogram");               \
    static const struct metrics_buckets buckets_##set = {                                          \
        .count = BUCKETS_##set, .bounds_us = bounds_us_##set, .texts = bucket_texts_##set};
BUCKET_SET(CALL)
BUCKET_SET(ATTEMPT)
BUCKET_SET(WAIT)

/* What a row's type stands for. */
#define TYPE_COUNTER                 METRIC_TYPE_COUNTER
#define TYPE_GAUGE_SUM               METRIC_TYPE_GAUGE_SUM
#define TYPE_GAUGE_MAX               METRIC_TYPE_GAUGE_MAX
#define TYPE_HISTOGRAM_CALL          METRIC_TYPE_HISTOGRAM
#define TYPE_HISTOGRAM_ATTEMPT       METRIC_TYPE_HISTOGRAM
#define TYPE_HISTOGRAM_WAIT          METRIC_TYPE_HISTOGRAM
#define BUCKETS_OF_COUNTER           NULL
#define BUCKETS_OF_GAUGE_SUM         NULL
#define BUCKETS_OF_GAUGE_MAX         NULL
#define BUCKETS_OF_HISTOGRAM_CALL    &buckets_CALL
#define BUCKETS_OF_HISTOGRAM_ATTEMPT &buckets_ATTEMPT
#define BUCKETS_OF_HISTOGRAM_WAIT    &buckets_WAIT

/* ---- metrics ---- */

static const struct metrics_desc descs[METRIC_COUNT] = {
#define METRIC(kind_of, id, label_set, text)                                                       \
    [METRIC_##id] = {.name = #id,                                                                  \
                     .help = text,                                                                 \
                     .type = TYPE_##kind_of,                                                       \
                     .first_cell = offsetof(struct metrics_block, id) / sizeof(uint64_t),          \
                     .label_count = LABELS_##label_set,                                            \
                     .width = CELLS_##kind_of,                                                     \
                     .buckets = BUCKETS_OF_##kind_of,                                              \
                     .labels = &set_##label_set},
#include "common/shm/metrics.def"
};

const struct metrics_desc *metrics_desc(enum metric metric)
{
    return (unsigned)metric < METRIC_COUNT ? &descs[metric] : NULL;
}

static const struct scraped_desc scraped_descs[SCRAPED_COUNT] = {
#define SCRAPED(id, first, second, text)                                                           \
    [SCRAPED_##id] = {.name = #id, .help = text, .keys = {first, second}},
#include "common/shm/metrics.def"
};

const struct scraped_desc *scraped_desc(enum scraped scraped)
{
    return (unsigned)scraped < SCRAPED_COUNT ? &scraped_descs[scraped] : NULL;
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
    uint64_t hash = 0;

    for (size_t i = 0; i < METRIC_COUNT; i++) {
        hash = hash_words(hash, fnv1a64(descs[i].name, strlen(descs[i].name)),
                          (uint64_t)descs[i].type);
        hash = hash_words(hash, descs[i].first_cell, descs[i].label_count);
        if (descs[i].buckets) {
            const size_t bounds = descs[i].buckets->count - 1;

            hash = hash_words(hash, fnv1a64(descs[i].buckets->bounds_us, bounds * sizeof(uint64_t)),
                              bounds);
        }
        hash = hash_dim(hash, &descs[i].labels->dims[0]);
        hash = hash_dim(hash, &descs[i].labels->dims[1]);
    }
    return hash;
}
