/* Durations and sizes: decimal digits and one unit from a table. Writing picks the shortest text
 * that reads back to the same number, so that a printed configuration looks as people write it. */
#include "common/core/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: the first one that divides a number gives the fewest digits. */
static const struct unit duration_units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};
static const struct unit size_units[] = {
    {"GiB", 1u << 30}, {"GB", 1000000000}, {"MiB", 1u << 20}, {"MB", 1000000},
    {"KiB", 1u << 10}, {"KB", 1000},       {"B", 1},          {"", 1},
};
#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))
#define OUT_MAX         32

static int parse(const char *text, const struct unit *units, size_t unit_count, uint64_t max,
                 uint64_t *ret)
{
    const char *p = text;
    uint64_t number = 0;
    bool is_too_long = false;

    if (*p < '0' || *p > '9') {
        return -EINVAL;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        is_too_long = is_too_long || number > (UINT64_MAX - digit) / 10;
        if (!is_too_long) {
            number = number * 10 + digit;
        }
    }
    for (size_t i = 0; i < unit_count; i++) {
        if (strcmp(p, units[i].name) != 0) {
            continue;
        }
        if (is_too_long || number > max / units[i].factor) {
            return -ERANGE;
        }
        *ret = number * units[i].factor;
        return 0;
    }
    return -EINVAL; /* no unit, or one we don't know: malformed even where the number is too long */
}

int units_parse_duration(const char *text, int64_t *ret_ms)
{
    uint64_t ms;

    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    int err = parse(text, duration_units, COUNT_OF(duration_units), INT64_MAX, &ms);
    if (err < 0) {
        return err;
    }
    *ret_ms = (int64_t)ms;
    return 0;
}

int units_parse_size(const char *text, uint64_t *ret_bytes)
{
    return parse(text, size_units, COUNT_OF(size_units), UINT64_MAX, ret_bytes);
}

static void format_shortest(uint64_t number, const struct unit *units, size_t unit_count, char *out)
{
    char text[OUT_MAX];
    size_t best = OUT_MAX;

    for (size_t i = 0; i < unit_count; i++) {
        if (number % units[i].factor != 0) {
            continue;
        }
        int len =
            snprintf(text, sizeof(text), "%" PRIu64 "%s", number / units[i].factor, units[i].name);
        if (len > 0 && (size_t)len < best) {
            best = (size_t)len;
            memcpy(out, text, best + 1);
        }
    }
}

void units_format_duration(int64_t ms, char *out)
{
    if (ms <= 0) { /* there is no negative duration to write */
        memcpy(out, "0", sizeof("0"));
        return;
    }
    format_shortest((uint64_t)ms, duration_units, COUNT_OF(duration_units), out);
}

void units_format_size(uint64_t bytes, char *out)
{
    if (bytes == 0) {
        memcpy(out, "0", sizeof("0"));
        return;
    }
    format_shortest(bytes, size_units, COUNT_OF(size_units), out);
}
