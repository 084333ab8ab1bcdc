/* Metrics as text for Prometheus (exposition format 0.0.4). Sums over the slots, adds what is known
 * only to the caller. A corrupt cell yields a wrong number, never invalid text. Contract §10. */
#ifndef COMMON_SHM_EXPOSITION_H
#define COMMON_SHM_EXPOSITION_H

#include <stddef.h>

struct buf;
struct shm;
struct metrics_snapshot;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Names of the labels whose sets belong to the caller, in the order of their indexes; at most 32
 * are used. Counts past the names given, or under a name given twice, are added to `other` or to
 * the first of that name. */
struct exposition_list {
    const char *const *names;
    size_t count;
};
struct exposition_names {
    struct exposition_list kinds;
    struct exposition_list scripts;
    struct exposition_list routes;
};

/* Appends every metric of metrics.def, process_up and build_info. 0, -ENOBUFS (buffer's maximum),
 * -ENOMEM. About 100 kB at most with every name in use: give the buffer 1 MB. */
int metrics_expose(const struct shm *shm, const struct exposition_names *names, struct buf *out);
/* Only the table's part, from a snapshot. */
int metrics_expose_snapshot(const struct metrics_snapshot *snapshot,
                            const struct exposition_names *names, struct buf *out);

/* A whole family of gauges that the caller computed. `name` without prefix; key NULL: one sample
 * without label. exposition_gauge(out, "entries", "Entries by status.", "status", samples, 5); NaN
 * and infinities are written as the format has them. No more than one call per name and scrape. */
struct exposition_sample {
    const char *label; /* value of the label; ignored without key */
    double value;
};
int exposition_gauge(struct buf *out, const char *name, const char *help, const char *key,
                     const struct exposition_sample *samples, size_t count);

#endif
