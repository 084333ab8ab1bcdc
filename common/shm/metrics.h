/* Counting: one relaxed add into the calling process's own block, no locks, no strings, no
 * allocation. What there is to count is metrics.def, the label values are metrics_layout.h; text
 * comes out through exposition.h.
 *
 * Every function takes a NULL `m` (does nothing) and any number as a label: an index past a set
 * with an `other` counts there, any other one is not counted. Nothing here fails. */
#ifndef COMMON_SHM_METRICS_H
#define COMMON_SHM_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/lifecycle.h"
#include "common/shm/metrics_layout.h"

struct shm;
struct metrics;

enum metric {
#define METRIC(type, name, labels, help) METRIC_##name,
#include "common/shm/metrics.def"
    METRIC_COUNT
};

enum metric_type {
    METRIC_TYPE_COUNTER,
    METRIC_TYPE_GAUGE_SUM,
    METRIC_TYPE_GAUGE_MAX,
    METRIC_TYPE_HISTOGRAM,
};

/* The block of the caller's own slot; lives as long as `shm`. NULL for a read-only segment. */
struct metrics *metrics_of(struct shm *shm);
/* A block on the heap, for tests and tools; NULL if out of memory. */
struct metrics *metrics_create_private(void);
void metrics_destroy(struct metrics **m); /* only what metrics_create_private made */

/* label: 0 where the set is NONE, else LABEL_<SET>_<ID>. Sets of two labels have helpers of their
 * own below. */
void metrics_add(struct metrics *m, enum metric metric, size_t label, uint64_t n);
/* Gauges only. */
void metrics_sub(struct metrics *m, enum metric metric, size_t label, uint64_t n);
void metrics_set(struct metrics *m, enum metric metric, size_t label, uint64_t value);
/* Histograms only. Negative and NaN count as 0, more than a century as a century. */
void metrics_observe_seconds(struct metrics *m, enum metric metric, size_t label, double seconds);
/* The same from a difference of clock_mono_ns(): exact, no floating point. */
void metrics_observe_ns(struct metrics *m, enum metric metric, size_t label, int64_t ns);

/* kind: its `place`; script, route: index in their own tables. Beyond the last place: `other`. */
void metrics_add_delivery(struct metrics *m, size_t kind, enum outcome outcome, uint64_t n);
void metrics_add_store_request(struct metrics *m, size_t script, enum label_store_result result,
                               uint64_t n);
void metrics_add_http_request(struct metrics *m, size_t route, unsigned http_status, uint64_t n);
void metrics_add_restart(struct metrics *m, enum label_role role, enum label_death_reason reason,
                         uint64_t n);
/* loop_last_run_timestamp_seconds: `wall_ms` is Unix time. */
void metrics_loop_ran(struct metrics *m, enum label_loop loop, int64_t wall_ms);
/* Sets every GAUGE_SUM of the block to 0: what a process that is gone held, it holds no more. */
void metrics_reset_gauges(struct metrics *m);

/* Reading, for `top`, the exposition and tests: a copy of all cells, added up as their types say.
 */
struct metrics_snapshot {
    uint64_t cells[METRICS_CELLS];
};
/* Over all slots; or of one slot (nothing for a slot that does not exist). Both overwrite *ret:
 * some 20 kB, so on the heap. */
void metrics_snapshot_all(const struct shm *shm, struct metrics_snapshot *ret);
void metrics_snapshot_slot(const struct shm *shm, uint32_t slot, struct metrics_snapshot *ret);
void metrics_snapshot_of(const struct metrics *m, struct metrics_snapshot *ret);

/* A counter's or gauge's value; 0 for a histogram or a label out of range. */
uint64_t metrics_value(const struct metrics_snapshot *snapshot, enum metric metric, size_t label);
struct metrics_histogram {
    const struct metrics_buckets *bounds; /* NULL: this is none */
    uint64_t buckets[BUCKETS_MAX];        /* each its own range; the last of them is +Inf */
    uint64_t count;
    double sum_seconds;
};
/* One series of a histogram; all zeroes for what is none. */
void metrics_histogram(const struct metrics_snapshot *snapshot, enum metric metric, size_t label,
                       struct metrics_histogram *ret);
/* What `later` has on top of `earlier` (a bucket that went backwards counts as 0): for rates and
 * recent latencies. */
void metrics_histogram_since(const struct metrics_histogram *later,
                             const struct metrics_histogram *earlier,
                             struct metrics_histogram *ret);
/* Estimate of quantile q in [0,1], in seconds, by linear interpolation in its bucket; -1 for an
 * empty one. */
double metrics_quantile(const struct metrics_histogram *histogram, double q);

/* The table, for the exposition and for the layout fingerprint. */
enum label_names {
    LABEL_NAMES_FIXED, /* `names` holds them all */
    LABEL_NAMES_KIND,  /* given by the caller, the last place is `other` */
    LABEL_NAMES_SCRIPT,
    LABEL_NAMES_ROUTE,
};
struct metrics_label_dim {
    const char *key; /* NULL: no such label */
    size_t count;
    enum label_names source;
    const char *const *names; /* NULL unless LABEL_NAMES_FIXED */
};
struct metrics_label_set {
    struct metrics_label_dim dims[2]; /* index = first * dims[1].count + second */
    int is_sparse;                    /* not 0: series that never counted are left out */
};
struct metrics_buckets {
    size_t count; /* with +Inf, which has no bound in microseconds */
    const uint64_t *bounds_us;
    const char *const *texts; /* seconds: "0.0001", …, "+Inf" */
};
struct metrics_desc {
    const char *name; /* without prefix */
    const char *help;
    enum metric_type type;
    size_t first_cell;
    size_t label_count;
    size_t width; /* cells of one series */
    const struct metrics_label_set *labels;
    const struct metrics_buckets *buckets; /* histograms; NULL for all others */
};
/* NULL out of range. */
const struct metrics_desc *metrics_desc(enum metric metric);
/* All cells of a metric, those of its series one after the other. */
size_t metrics_cell_count(const struct metrics_desc *desc);
/* Adds to one of them; nothing for a number out of range. */
void metrics_add_cell(struct metrics *m, enum metric metric, size_t cell, uint64_t n);

/* Gauges that are worked out when /metrics is read. */
enum scraped {
#define SCRAPED(name, first_label, second_label, help) SCRAPED_##name,
#include "common/shm/metrics.def"
    SCRAPED_COUNT
};
struct scraped_desc {
    const char *name; /* without prefix */
    const char *help;
    const char *keys[2]; /* of its labels; NULL: no such label */
};
/* NULL out of range. */
const struct scraped_desc *scraped_desc(enum scraped scraped);

/* A number made from the whole table: two programs with the same one agree about every cell. */
uint64_t metrics_fingerprint(void);

#endif
