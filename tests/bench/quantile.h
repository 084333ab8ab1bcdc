/* Quantiles of measured times. */
#ifndef TESTS_BENCH_QUANTILE_H
#define TESTS_BENCH_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

/* Sorts in place. */
void quantile_sort(uint64_t *values, size_t count);
/* Of sorted values in ns, as ms; 0 without any. */
double quantile_ms(const uint64_t *sorted, size_t count, double q);

#endif
