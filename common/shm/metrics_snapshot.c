/* Reading the counters: copies of all cells, added up over the slots as each metric's type says.
 * Numbers read here may be garbage; nothing is done with them but arithmetic that cannot trap. */
#include <string.h>

#include "common/shm/metrics.h"
#include "common/shm/shm_private.h"

static const _Atomic uint64_t *cells_at(const struct metrics_block *block)
{
    return (const _Atomic uint64_t *)(const void *)block;
}

size_t metrics_cell_count(const struct metrics_desc *desc)
{
    return desc->label_count * desc->width;
}

static void merge_block(const struct metrics_block *block, struct metrics_snapshot *into)
{
    const _Atomic uint64_t *cells = cells_at(block);

    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);
        const size_t end = desc->first_cell + metrics_cell_count(desc);
        for (size_t i = desc->first_cell; i < end; i++) {
            const uint64_t value = atomic_load_explicit(&cells[i], memory_order_relaxed);
            if (desc->type != METRIC_TYPE_GAUGE_MAX) {
                into->cells[i] += value; /* wraps, if garbage says so */
            } else if (value > into->cells[i]) {
                into->cells[i] = value;
            }
        }
    }
}

void metrics_snapshot_all(const struct shm *shm, struct metrics_snapshot *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (uint32_t slot = 0; slot < shm_slot_count(shm); slot++) {
        merge_block(shm_metrics_at(shm, slot), ret);
    }
}

void metrics_snapshot_slot(const struct shm *shm, uint32_t slot, struct metrics_snapshot *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (slot < shm_slot_count(shm)) {
        merge_block(shm_metrics_at(shm, slot), ret);
    }
}

void metrics_snapshot_of(const struct metrics *m, struct metrics_snapshot *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (m) {
        merge_block(m->block, ret);
    }
}

uint64_t metrics_value(const struct metrics_snapshot *snapshot, enum metric metric, size_t label)
{
    const struct metrics_desc *desc = metrics_desc(metric);

    if (!desc || desc->type == METRIC_TYPE_HISTOGRAM || label >= desc->label_count) {
        return 0;
    }
    return snapshot->cells[desc->first_cell + label];
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

void metrics_histogram(const struct metrics_snapshot *snapshot, enum metric metric, size_t label,
                       struct metrics_histogram *ret)
{
    const struct metrics_desc *desc = metrics_desc(metric);

    *ret = (struct metrics_histogram){.count = 0};
    if (!desc || desc->type != METRIC_TYPE_HISTOGRAM || label >= desc->label_count) {
        return;
    }
    const uint64_t *cells = &snapshot->cells[desc->first_cell + label * desc->width];
    ret->bounds = desc->buckets;
    for (size_t i = 0; i < desc->buckets->count; i++) {
        ret->buckets[i] = cells[i];
        ret->count = add_saturated(ret->count, cells[i]);
    }
    ret->sum_seconds = (double)cells[desc->buckets->count] / 1e9;
}

void metrics_histogram_since(const struct metrics_histogram *later,
                             const struct metrics_histogram *earlier, struct metrics_histogram *ret)
{
    struct metrics_histogram since = {.bounds = later->bounds};

    for (size_t i = 0; i < BUCKETS_MAX; i++) {
        since.buckets[i] =
            later->buckets[i] > earlier->buckets[i] ? later->buckets[i] - earlier->buckets[i] : 0;
        since.count = add_saturated(since.count, since.buckets[i]);
    }
    since.sum_seconds =
        later->sum_seconds > earlier->sum_seconds ? later->sum_seconds - earlier->sum_seconds : 0;
    *ret = since;
}

double metrics_quantile(const struct metrics_histogram *histogram, double q)
{
    if (!histogram->bounds || histogram->count == 0 || !(q >= 0 && q <= 1)) {
        return -1;
    }
    const double rank = q * (double)histogram->count;
    double below = 0;
    double lower = 0;

    for (size_t i = 0; i < histogram->bounds->count - 1; i++) {
        const double upper = (double)histogram->bounds->bounds_us[i] / 1e6;
        const double in_bucket = (double)histogram->buckets[i];
        if (in_bucket > 0 && below + in_bucket >= rank) {
            return lower + (upper - lower) * (rank > below ? (rank - below) / in_bucket : 0);
        }
        below += in_bucket;
        lower = upper;
    }
    return lower; /* in +Inf: all that can be said is that it is at least the last bound */
}
