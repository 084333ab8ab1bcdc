/* Rates and latencies between two samples. Pure. */
#ifndef API_CTL_TOP_FIGURES_H
#define API_CTL_TOP_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/lifecycle.h"

struct top_sample;

struct top_quantiles {
    double p50, p99; /* seconds; -1 without a measurement */
};

struct top_figures {
    bool is_since_start;
    double seconds; /* that the rates are over; 0: unknown, then all rates are 0 */
    double accepts, duplicates, refused, deliveries; /* per second */
    double outcomes[OUTCOME_COUNT];                  /* per second */
    struct top_quantiles accept, dispatch, delivery;
    uint64_t locks_held, restarts, ring_drops; /* now; since the start */
};

/* `earlier` NULL, or of another generation: since the start. */
void top_figures_compute(const struct top_sample *later, const struct top_sample *earlier,
                         struct top_figures *ret);

#endif
