/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF. Pure. */
#ifndef COMMON_CORE_UTF8_H
#define COMMON_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads one code point. Returns the number of bytes (1 to 4) and fills *ret, or 0 if `bytes` does
 * not begin with a whole valid sequence (or len is 0): then *ret is left alone. */
size_t utf8_next(const char *bytes, size_t len, uint32_t *ret);
bool utf8_is_valid(const char *bytes, size_t len);

#endif
