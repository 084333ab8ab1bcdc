/* HTTP dates (RFC 9110 §5.6.7) in their three forms. Pure. */
#ifndef COMMON_CORE_HTTP_DATE_H
#define COMMON_CORE_HTTP_DATE_H

#include <stddef.h>
#include <stdint.h>

/* Reads IMF-fixdate ("Sun, 06 Nov 1994 08:49:37 GMT"), RFC 850 ("Sunday, 06-Nov-94 08:49:37 GMT")
 * or asctime
 * ("Sun Nov  6 08:49:37 1994"). `now_ms` places two-digit years: never more than 50 years in the
 * future. The name of the day must be one, but need not be right. Returns 0 and Unix milliseconds,
 * or -EINVAL. */
int http_date_parse(const char *text, size_t len, int64_t now_ms, int64_t *ret_ms);

#endif
