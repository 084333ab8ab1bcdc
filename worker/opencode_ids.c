/* 48 bits of time and a counter, as the server writes them, then the random bits in base 62. */
#include "worker/opencode_ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/ids.h"

#define RANDOM_BYTES  10
#define RANDOM_DIGITS 14

/* An entry ID's 128 bits: 48 of milliseconds, 80 random ones. */
static void read_bits(struct span entry_id, uint64_t *ret_ms, uint8_t random[RANDOM_BYTES])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint64_t high = 0, low = 0;

    for (size_t i = 3; i < entry_id.len; i++) { /* behind "ob_" */
        const uint64_t digit = (uint64_t)(strchr(digits, entry_id.ptr[i]) - digits);

        high = high << 5 | low >> 59;
        low = low << 5 | digit;
    }
    *ret_ms = high >> 16;
    random[0] = (uint8_t)(high >> 8 & 0xff);
    random[1] = (uint8_t)(high & 0xff);
    for (size_t i = 0; i < 8; i++) {
        random[2 + i] = (uint8_t)(low >> (56 - 8 * i) & 0xff);
    }
}

/* Divides the number in place, most significant byte first, and returns the rest. */
static unsigned divide(uint8_t number[RANDOM_BYTES], unsigned by)
{
    unsigned rest = 0;

    for (size_t i = 0; i < RANDOM_BYTES; i++) {
        rest = rest << 8 | number[i];
        number[i] = (uint8_t)(rest / by);
        rest %= by;
    }
    return rest;
}

int opencode_ids_of(struct span entry_id, struct opencode_ids *ret)
{
    static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint8_t random[RANDOM_BYTES];
    char digits[RANDOM_DIGITS + 1] = "";
    uint64_t ms;

    if (!entry_id_is_valid(entry_id.ptr, entry_id.len)) {
        return -EINVAL;
    }
    read_bits(entry_id, &ms, random);
    const uint64_t stamp =
        (ms << 12 | (uint64_t)random[0] << 4 | (uint64_t)random[1] >> 4) & 0xffffffffffff;

    for (size_t i = RANDOM_DIGITS; i-- > 0;) {
        digits[i] = base62[divide(random, 62)];
    }
    snprintf(ret->message, sizeof(ret->message), "msg_%012" PRIx64 "%s", stamp, digits);
    snprintf(ret->part, sizeof(ret->part), "prt_%012" PRIx64 "%s", stamp, digits);
    return 0;
}

/* A number and what follows it; false: there is none, or one that no version has. */
static bool take_number(const char **at, unsigned long *ret)
{
    char *end;

    if (**at < '0' || **at > '9') {
        return false;
    }
    *ret = strtoul(*at, &end, 10);
    *at = end;
    return *ret < 100000;
}

bool opencode_takes_ids(const char *version)
{
    static const unsigned long since[] = {1, 18, 16};
    unsigned long given[3];
    const char *at = version;

    for (size_t i = 0; i < 3; i++) {
        if (!take_number(&at, &given[i]) || (i < 2 && *at++ != '.')) {
            return false;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        if (given[i] != since[i]) {
            return given[i] > since[i];
        }
    }
    return *at == '\0'; /* a pre-release of the first good one is none of it */
}
