/* The counters as Prometheus text. Works on a snapshot: places without a name of their own are
 * folded into `other` there, then every series left is written once. Numbers may be garbage, the
 * text never is. */
#include "common/shm/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/core/buf.h"
#include "common/core/utf8.h"
#include "common/shm/metrics.h"

#define PREFIX               "outbox_"
#define OTHER                "other"
#define NANOSECONDS_A_SECOND UINT64_C(1000000000)
#define REPLACEMENT          "\xef\xbf\xbd" /* U+FFFD */

/* ---- text ---- */

/* Errors stay in the buffer: it is asked once at the end. */
static void append_escaped(struct buf *out, const char *text, bool is_label)
{
    size_t left = strlen(text);

    while (left > 0) {
        uint32_t code_point;
        const size_t len = utf8_next(text, left, &code_point);
        if (*text == '\\') {
            (void)buf_append_str(out, "\\\\");
        } else if (*text == '\n') {
            (void)buf_append_str(out, "\\n");
        } else if (*text == '"' && is_label) {
            (void)buf_append_str(out, "\\\"");
        } else if (len == 0) {
            (void)buf_append_str(out, REPLACEMENT);
        } else {
            (void)buf_append(out, text, len);
        }
        text += len ? len : 1;
        left -= len ? len : 1;
    }
}

static void append_family(struct buf *out, const char *name, const char *help, const char *type)
{
    (void)buf_appendf(out, "# HELP " PREFIX "%s ", name);
    append_escaped(out, help, false);
    (void)buf_appendf(out, "\n# TYPE " PREFIX "%s %s\n", name, type);
}

/* Labels are written as they come; the braces open with the first. */
static void append_label(struct buf *out, bool *is_open, const char *key, const char *value)
{
    (void)buf_appendf(out, "%s%s=\"", *is_open ? "," : "{", key);
    append_escaped(out, value, true);
    (void)buf_append_str(out, "\"");
    *is_open = true;
}

static int finish(const struct buf *out)
{
    return out->failed ? -ENOBUFS : 0;
}

/* ---- series ---- */

static struct exposition_list list_of(const struct exposition_names *names, enum label_names source)
{
    const struct exposition_list none = {.names = NULL};

    if (!names) {
        return none;
    }
    switch (source) {
    case LABEL_NAMES_FIXED:
        return none;
    case LABEL_NAMES_KIND:
        return names->kinds;
    case LABEL_NAMES_SCRIPT:
        return names->scripts;
    case LABEL_NAMES_ROUTE:
        return names->routes;
    }
    return none;
}

static const char *label_text(const struct exposition_names *names,
                              const struct metrics_label_dim *dim, size_t i)
{
    if (dim->source == LABEL_NAMES_FIXED) {
        return dim->names ? dim->names[i] : "";
    }
    const struct exposition_list list = list_of(names, dim->source);
    /* The last place is `other` however many names there are. */
    return i < dim->count - 1 && i < list.count && list.names[i] ? list.names[i] : OTHER;
}

/* The place whose series takes what was counted in place i: the first of the same name, or `other`.
 */
static size_t home_of(const struct exposition_names *names, const struct metrics_label_dim *dim,
                      size_t i)
{
    if (dim->source == LABEL_NAMES_FIXED) {
        return i;
    }
    const char *text = label_text(names, dim, i);
    if (strcmp(text, OTHER) == 0) {
        return dim->count - 1;
    }
    size_t home = 0;
    while (home < i && strcmp(label_text(names, dim, home), text) != 0) {
        home++;
    }
    return home;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static bool has_counted(const uint64_t *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cells[i] != 0) {
            return true;
        }
    }
    return false;
}

struct series {
    const struct metrics_desc *desc;
    const struct exposition_names *names;
    size_t first, second; /* places in the two label sets */
    const uint64_t *cells;
};

static void append_series_name(struct buf *out, const struct series *series, const char *suffix,
                               bool *is_open)
{
    const struct metrics_label_dim *dims = series->desc->labels->dims;

    *is_open = false;
    (void)buf_appendf(out, PREFIX "%s%s", series->desc->name, suffix);
    if (dims[0].key) {
        append_label(out, is_open, dims[0].key, label_text(series->names, &dims[0], series->first));
    }
    if (dims[1].key) {
        append_label(out, is_open, dims[1].key,
                     label_text(series->names, &dims[1], series->second));
    }
}

static void append_number(struct buf *out, bool is_open, uint64_t value)
{
    (void)buf_appendf(out, "%s %" PRIu64 "\n", is_open ? "}" : "", value);
}

static void append_histogram(struct buf *out, const struct series *series)
{
    const struct metrics_buckets *buckets = series->desc->buckets;
    uint64_t cumulative = 0;
    bool is_open;

    for (size_t i = 0; i < buckets->count; i++) {
        cumulative = add_saturated(cumulative, series->cells[i]);
        append_series_name(out, series, "_bucket", &is_open);
        append_label(out, &is_open, "le", buckets->texts[i]);
        append_number(out, is_open, cumulative);
    }
    const uint64_t sum_ns = series->cells[buckets->count];
    append_series_name(out, series, "_sum", &is_open);
    (void)buf_appendf(out, "%s %" PRIu64 ".%09" PRIu64 "\n", is_open ? "}" : "",
                      sum_ns / NANOSECONDS_A_SECOND, sum_ns % NANOSECONDS_A_SECOND);
    append_series_name(out, series, "_count", &is_open);
    append_number(out, is_open, cumulative);
}

static void append_series(struct buf *out, const struct series *series)
{
    bool is_open;

    if (series->desc->type == METRIC_TYPE_HISTOGRAM) {
        append_histogram(out, series);
        return;
    }
    append_series_name(out, series, "", &is_open);
    append_number(out, is_open, series->cells[0]);
}

/* Adds what stands in places without a series of their own to the series they belong to. */
static void fold(const struct metrics_desc *desc, const struct exposition_names *names,
                 uint64_t *cells)
{
    const struct metrics_label_dim *dims = desc->labels->dims;
    const size_t stride = dims[1].count * desc->width;

    for (size_t i = 0; i < dims[0].count; i++) {
        const size_t home = home_of(names, &dims[0], i);
        for (size_t c = 0; home != i && c < stride; c++) {
            cells[home * stride + c] =
                add_saturated(cells[home * stride + c], cells[i * stride + c]);
        }
    }
}

static void append_metric(struct buf *out, const struct metrics_desc *desc,
                          const struct exposition_names *names, uint64_t *cells)
{
    static const char *const types[] = {
        [METRIC_TYPE_COUNTER] = "counter",
        [METRIC_TYPE_GAUGE_SUM] = "gauge",
        [METRIC_TYPE_GAUGE_MAX] = "gauge",
        [METRIC_TYPE_HISTOGRAM] = "histogram",
    };
    const struct metrics_label_dim *dims = desc->labels->dims;

    fold(desc, names, cells);
    append_family(out, desc->name, desc->help, types[desc->type]);
    for (size_t i = 0; i < desc->label_count; i++) {
        const struct series series = {
            .desc = desc,
            .names = names,
            .first = i / dims[1].count,
            .second = i % dims[1].count,
            .cells = cells + i * desc->width,
        };
        const bool is_other =
            dims[0].source != LABEL_NAMES_FIXED && series.first == dims[0].count - 1;
        if (home_of(names, &dims[0], series.first) != series.first) {
            continue;
        }
        if ((desc->labels->is_sparse || is_other) && !has_counted(series.cells, desc->width)) {
            continue;
        }
        append_series(out, &series);
    }
}

/* ---- what is public ---- */

int metrics_expose_snapshot(const struct metrics_snapshot *snapshot,
                            const struct exposition_names *names, struct buf *out)
{
    AUTO_FREE struct metrics_snapshot *folded = malloc(sizeof(*folded));
    if (!folded) {
        return -ENOMEM;
    }
    memcpy(folded, snapshot, sizeof(*folded));
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metrics_desc *desc = metrics_desc((enum metric)metric);
        append_metric(out, desc, names, &folded->cells[desc->first_cell]);
    }
    return finish(out);
}

static void append_double(struct buf *out, double value)
{
    if (isnan(value)) {
        (void)buf_append_str(out, " NaN\n");
    } else if (isinf(value)) {
        (void)buf_append_str(out, value > 0 ? " +Inf\n" : " -Inf\n");
    } else {
        (void)buf_appendf(out, " %.15g\n", value);
    }
}

int exposition_gauge(struct buf *out, enum scraped gauge, const struct exposition_sample *samples,
                     size_t count)
{
    const struct scraped_desc *desc = scraped_desc(gauge);

    append_family(out, desc->name, desc->help, "gauge");
    for (size_t i = 0; i < count; i++) {
        bool is_open = false;
        (void)buf_appendf(out, PREFIX "%s", desc->name);
        for (size_t k = 0; k < 2 && desc->keys[k]; k++) {
            append_label(out, &is_open, desc->keys[k], samples[i].labels[k]);
        }
        (void)buf_append_str(out, is_open ? "}" : "");
        append_double(out, samples[i].value);
    }
    return finish(out);
}
