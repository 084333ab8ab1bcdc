/* Differences of counters and histograms. A counter that went backwards (garbage) counts as 0. */
#include "api/ctl/top_figures.h"

#include <string.h>

#include "api/ctl/top_sample.h"

struct span_of_time {
    const struct top_sample *later;
    const struct top_sample *earlier; /* NULL: the start */
    double seconds;
};

static uint64_t gained(const struct span_of_time *span, enum metric metric, size_t label)
{
    const uint64_t later = metrics_value(&span->later->metrics, metric, label);
    const uint64_t earlier =
        span->earlier ? metrics_value(&span->earlier->metrics, metric, label) : 0;

    return later > earlier ? later - earlier : 0;
}

static double rate(const struct span_of_time *span, enum metric metric, size_t label)
{
    return span->seconds > 0 ? (double)gained(span, metric, label) / span->seconds : 0;
}

static void add_histogram(struct metrics_histogram *sum, const struct metrics_histogram *one)
{
    sum->bounds = one->bounds;
    for (size_t i = 0; i < BUCKETS_MAX; i++) {
        sum->buckets[i] += one->buckets[i];
    }
    sum->count += one->count;
    sum->sum_seconds += one->sum_seconds;
}

static struct top_quantiles quantiles(const struct span_of_time *span, enum metric metric,
                                      size_t labels)
{
    struct metrics_histogram sum = {0};

    for (size_t label = 0; label < labels; label++) {
        struct metrics_histogram later, earlier = {0}, difference;

        metrics_histogram(&span->later->metrics, metric, label, &later);
        if (span->earlier) {
            metrics_histogram(&span->earlier->metrics, metric, label, &earlier);
        }
        metrics_histogram_since(&later, &earlier, &difference);
        add_histogram(&sum, &difference);
    }
    return (struct top_quantiles){metrics_quantile(&sum, 0.5), metrics_quantile(&sum, 0.99)};
}

static void add_accepts(const struct span_of_time *span, struct top_figures *figures)
{
    for (size_t label = 0; label < LABELS_ACCEPT_RESULT; label++) {
        double *const sum = label == LABEL_ACCEPT_RESULT_ACCEPTED    ? &figures->accepts
                            : label == LABEL_ACCEPT_RESULT_DUPLICATE ? &figures->duplicates
                                                                     : &figures->refused;

        *sum += rate(span, METRIC_accepts_total, label);
    }
}

static void add_deliveries(const struct span_of_time *span, struct top_figures *figures)
{
    for (size_t label = 0; label < LABELS_KIND_OUTCOME; label++) {
        const double one = rate(span, METRIC_deliveries_total, label);

        figures->outcomes[label % LABELS_OUTCOME] += one;
        figures->deliveries += one;
    }
}

void top_figures_compute(const struct top_sample *later, const struct top_sample *earlier,
                         struct top_figures *ret)
{
    struct span_of_time span = {.later = later};
    struct top_figures figures = {.is_since_start = true};

    if (earlier && earlier->generation == later->generation && earlier->mono_ms < later->mono_ms) {
        span.earlier = earlier;
        span.seconds = (double)(later->mono_ms - earlier->mono_ms) / 1000;
        figures.is_since_start = false;
    } else if (later->uptime_ms > 0) {
        span.seconds = (double)later->uptime_ms / 1000;
    }
    figures.seconds = span.seconds;
    add_accepts(&span, &figures);
    add_deliveries(&span, &figures);
    figures.accept = quantiles(&span, METRIC_accept_duration_seconds, 1);
    figures.dispatch = quantiles(&span, METRIC_dispatch_latency_seconds, 1);
    figures.delivery = quantiles(&span, METRIC_delivery_duration_seconds, LABELS_KIND);
    figures.locks_held = metrics_value(&later->metrics, METRIC_locks_held, 0);
    for (size_t label = 0; label < LABELS_ROLE_REASON; label++) {
        figures.restarts += metrics_value(&later->metrics, METRIC_process_restarts_total, label);
    }
    for (size_t label = 0; label < LABELS_RING; label++) {
        figures.ring_drops += metrics_value(&later->metrics, METRIC_ring_drops_total, label);
    }
    *ret = figures;
}
