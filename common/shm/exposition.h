/* Metrics as text for Prometheus (exposition format 0.0.4). Sums over the slots, adds what is known
 * only to the caller. A corrupt cell yields a wrong number, never invalid text. Contract §10. */
#ifndef COMMON_SHM_EXPOSITION_H
#define COMMON_SHM_EXPOSITION_H

#include <stddef.h>

#include "common/shm/metrics.h"

struct buf;
struct shm;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Names of the labels whose sets belong to the caller, in the order of their indexes; no more are
 * used than there are places. Counts past the names given, or under a name given twice, are added
 * to `other` or to the first of that name. A name may be NULL: it has none. */
struct exposition_list {
    const char *const *names;
    size_t count;
};
struct exposition_names {
    struct exposition_list kinds;
    struct exposition_list scripts;
    struct exposition_list routes;
};

/* Appends every METRIC of metrics.def, and those SCRAPED ones that the segment alone tells:
 * processes and build. 0, -ENOBUFS (buffer's maximum), -ENOMEM. A megabyte is enough with every
 * name in use. */
int metrics_expose(const struct shm *shm, const struct exposition_names *names, struct buf *out);
/* Only the table's part, from a snapshot. */
int metrics_expose_snapshot(const struct metrics_snapshot *snapshot,
                            const struct exposition_names *names, struct buf *out);

/* A whole family of gauges that the caller worked out. NaN and infinities are written as the format
 * has them. No more than one call per gauge and scrape. 0 or -ENOBUFS. */
struct exposition_sample {
    const char *labels[2]; /* values of its labels; ignored where the gauge has no such label */
    double value;
};
int exposition_gauge(struct buf *out, enum scraped gauge, const struct exposition_sample *samples,
                     size_t count);

#endif
