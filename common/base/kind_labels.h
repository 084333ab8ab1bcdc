/* Which place each kind has in the metrics. Counters of a place outlive every process and every
 * configuration, so a kind keeps its place for good: kinds that come get the next free one, those
 * that go leave theirs behind. The supervisor keeps the register and hands it to children as text.
 * Contract §10. */
#ifndef COMMON_BASE_KIND_LABELS_H
#define COMMON_BASE_KIND_LABELS_H

#include <stddef.h>

#include "common/base/settings.h"

#define KIND_LABEL_MAX       64
#define KIND_LABELS_TEXT_MAX (KIND_COUNT_MAX * (KIND_LABEL_MAX + 1))

struct kind_labels {
    char texts[KIND_COUNT_MAX][KIND_LABEL_MAX + 1]; /* "": none */
    const char *names[KIND_COUNT_MAX];              /* points into texts, or NULL */
    size_t count;                                   /* places in use, in front */
};

/* From kind_labels_print's text; what is too much or too long is left out. Not copyable
 * afterwards. */
void kind_labels_parse(struct kind_labels *ret, const char *text);
/* Gives every kind of the settings a place that has none yet, as far as there are places. */
void kind_labels_add(struct kind_labels *labels, const struct settings *settings);
/* Sets the kinds' `place`; UINT32_MAX (counted as `other`) for those without one. */
void kind_labels_apply(const struct kind_labels *labels, struct settings *settings);
/* Names joined by commas, as a string of at most KIND_LABELS_TEXT_MAX bytes with its NUL. */
void kind_labels_print(const struct kind_labels *labels, char ret[KIND_LABELS_TEXT_MAX]);

#endif
