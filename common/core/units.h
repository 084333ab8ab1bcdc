/* Durations and sizes as people write them. Contract §13. */
#ifndef COMMON_CORE_UNITS_H
#define COMMON_CORE_UNITS_H

#include <stdint.h>

/* "250ms", "3s", "10m", "24h", "7d", "0". Returns 0 and *ret_ms, -EINVAL for a malformed text (a
 * bare number other than 0 included: the unit is not guessed), -ERANGE for overflow. No fractions,
 * no signs, no spaces. */
int units_parse_duration(const char *text, int64_t *ret_ms);
/* "100KB" = 100000, "64KiB" = 65536, "1MB", "1MiB", "1GB", "1GiB", "512B", bare bytes "512". As
 * above. */
int units_parse_size(const char *text, uint64_t *ret_bytes);
/* The shortest exact text that parses back to the same number. `out` holds at least 32 bytes. */
void units_format_duration(int64_t ms, char *out);
void units_format_size(uint64_t bytes, char *out);

#endif
