/* Looks things up in a text of Prometheus' exposition format. Pure. */
#ifndef API_CTL_METRICS_TEXT_H
#define API_CTL_METRICS_TEXT_H

#include <stdbool.h>

#include "common/core/span.h"

struct metrics_sample {
    struct span name, labels; /* labels: what stands within the braces */
    double value;
};

/* The next sample, taken off the text's front; comments and what is none are passed over. False: no
 * more. */
bool metrics_text_next(struct span *text, struct metrics_sample *ret);
/* A label's value as it stands (escapes and all); empty without. */
struct span metrics_label(const struct metrics_sample *sample, const char *label);

#endif
