/* Counters over an upgrade to a program that lays the shared memory out otherwise: by the metric's
 * name. What an upgrade to the same layout counts goes on in the same cells and needs none of this.
 * A metric whose label set changed in size starts anew, as it would with a restart. Contract §10.
 */
#ifndef SUPERVISOR_METRIC_TOTALS_H
#define SUPERVISOR_METRIC_TOTALS_H

#include <jansson.h>

struct metrics;
struct shm;

/* Counters and histograms, summed over all slots; NULL when out of memory. The caller's reference.
 */
json_t *metric_totals_export(const struct shm *shm);
/* Adds them to a block of our own. What is unknown or damaged is left out. */
void metric_totals_import(struct metrics *metrics, const json_t *totals);

#endif
