/* {"deliveries_total": {"cells": 429, "values": {"17": 12, …}}, …}: only what was counted. */
#include "supervisor/metric_totals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shm/metrics.h"

static bool is_carried(const struct metrics_desc *desc)
{
    return desc->type == METRIC_TYPE_COUNTER || desc->type == METRIC_TYPE_HISTOGRAM;
}

static json_t *export_one(const struct metrics_desc *desc, const uint64_t *cells)
{
    json_t *values = json_object();

    for (size_t i = 0; i < metrics_cell_count(desc); i++) {
        char key[24];

        if (cells[i] == 0) {
            continue;
        }
        (void)snprintf(key, sizeof(key), "%zu", i); /* fits */
        (void)json_object_set_new(values, key, json_integer((json_int_t)(cells[i] & INT64_MAX)));
    }
    return json_pack("{s:I, s:o}", "cells", (json_int_t)metrics_cell_count(desc), "values", values);
}

static void export_all(const struct metrics_snapshot *snapshot, json_t *totals)
{
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);

        if (is_carried(desc)) {
            (void)json_object_set_new(totals, desc->name,
                                      export_one(desc, &snapshot->cells[desc->first_cell]));
        }
    }
}

json_t *metric_totals_export(const struct shm *shm)
{
    struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));
    json_t *totals = json_object();

    if (snapshot && totals) {
        metrics_snapshot_all(shm, snapshot);
        export_all(snapshot, totals);
    } else {
        json_decref(totals);
        totals = NULL;
    }
    free(snapshot);
    return totals;
}

static void import_one(struct metrics *metrics, enum metric metric, json_t *values, size_t count)
{
    const char *key;
    json_t *value;

    json_object_foreach(values, key, value)
    {
        const unsigned long long cell = strtoull(key, NULL, 10);

        if (cell < count && json_is_integer(value) && json_integer_value(value) > 0) {
            metrics_add_cell(metrics, metric, (size_t)cell, (uint64_t)json_integer_value(value));
        }
    }
}

void metric_totals_import(struct metrics *metrics, const json_t *totals)
{
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);
        const json_t *one = json_object_get(totals, desc->name);

        if (is_carried(desc) && json_integer_value(json_object_get(one, "cells")) ==
                                    (json_int_t)metrics_cell_count(desc)) {
            import_one(metrics, (enum metric)metric, json_object_get(one, "values"),
                       metrics_cell_count(desc));
        }
    }
}
