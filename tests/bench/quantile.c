/* Quantiles of measured times, see the header. */
#include "tests/bench/quantile.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void quantile_sort(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
}

double quantile_ms(const uint64_t *sorted, size_t count, double q)
{
    return count ? (double)sorted[(size_t)((double)(count - 1) * q)] / 1e6 : 0;
}
