/* How outboxctl writes ages, latencies, rates and texts of others. Pure: numbers and bytes in, text
 * out. Text that came over the wire never reaches a terminal without print_safe(). */
#ifndef API_CTL_PRINT_H
#define API_CTL_PRINT_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct span;

#define PRINT_MAX 32 /* bytes that the functions below need */

/* "0.4s", "12s", "3m05s", "2h14m", "3d04h"; a negative age (clocks differ) is "0.0s". */
void print_age(int64_t ms, char out[PRINT_MAX]);
/* "85us", "1.2ms", "340ms", "2.5s"; "-" for a negative one (no such value). */
void print_latency(double seconds, char out[PRINT_MAX]);
/* "0/s", "0.25/s", "12.3/s", "1240/s". */
void print_rate(double per_second, char out[PRINT_MAX]);
/* Unix milliseconds of "2026-11-30T23:56:00.123Z", as the API writes times; -EINVAL. */
int print_parse_time(const char *text, int64_t *ret_ms);

/* Appends text so that no byte of it commands a terminal: control characters, direction marks and
 * broken UTF-8 become '?', line feeds and tabs become spaces. */
void print_safe(struct buf *out, struct span text);
/* The same, with line feeds kept. */
void print_safe_lines(struct buf *out, struct span text);
/* Appends words and a line feed; where a line would be longer than `columns` (0: no limit) it goes
 * on at `indent`. The first word stands at `column`. A line feed in the text begins another line.
 */
void print_wrapped(struct buf *out, const char *text, size_t column, size_t indent, size_t columns);
/* Columns that valid UTF-8 takes on a terminal. */
size_t print_width(struct span text);
/* The longest prefix in bytes that takes at most `columns`. */
size_t print_fit(struct span text, size_t columns);

#endif
