/* Entry IDs (time-sortable, Crockford base32) and lock tokens, written and read back.
 * Reading is strict: a token has one spelling, so that comparing texts compares tokens. */
#include "common/core/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ID_PREFIX     "ob_"
#define ID_PREFIX_LEN (sizeof(ID_PREFIX) - 1)
#define ID_DIGITS     26

static const char base32[] = "0123456789abcdefghjkmnpqrstvwxyz";

struct entry_id entry_id_make(int64_t wall_ms, const uint8_t random[10])
{
    struct entry_id id = {.text = ID_PREFIX};
    char *digits = id.text + ID_PREFIX_LEN;
    uint64_t ms = wall_ms < 0 ? 0 : (uint64_t)wall_ms;
    uint64_t high = ms << 16 | (uint64_t)random[0] << 8 | random[1];
    uint64_t low = 0;

    for (size_t i = 2; i < 10; i++) {
        low = low << 8 | random[i];
    }
    /* 128 bits, five at a time from the end; the first digit holds the three that are left. */
    for (size_t i = ID_DIGITS; i-- > 0;) {
        digits[i] = base32[low & 31];
        low = low >> 5 | high << 59;
        high >>= 5;
    }
    id.text[ENTRY_ID_LEN] = '\0';
    return id;
}

bool entry_id_is_valid(const char *text, size_t len)
{
    if (len != ENTRY_ID_LEN || memcmp(text, ID_PREFIX, ID_PREFIX_LEN) != 0) {
        return false;
    }
    if (text[ID_PREFIX_LEN] > '7') { /* more than 128 bits */
        return false;
    }
    for (size_t i = ID_PREFIX_LEN; i < len; i++) {
        if (!memchr(base32, text[i], sizeof(base32) - 1)) {
            return false;
        }
    }
    return true;
}

bool node_name_is_valid(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t len = strlen(name);

    return len >= 1 && len <= NODE_NAME_MAX && strspn(name, allowed) == len;
}

struct lock_token lock_token_make(const struct token_parts *parts)
{
    struct lock_token token;

    (void)snprintf(token.text, sizeof(token.text), /* at most 64 + 3 * 16 + 10 + 4 bytes */
                   "%.*s.%" PRIx64 ".%" PRIu32 ".%" PRIx64 ".%" PRIx64, NODE_NAME_MAX, parts->node,
                   parts->generation, parts->slot, parts->incarnation, parts->claim);
    return token;
}

struct lock_token lock_token_slot_prefix(const struct token_parts *parts)
{
    struct lock_token prefix;

    (void)snprintf(prefix.text, sizeof(prefix.text), "%.*s.%" PRIx64 ".%" PRIu32 ".", NODE_NAME_MAX,
                   parts->node, parts->generation, parts->slot);
    return prefix;
}

struct lock_token lock_token_process_prefix(const struct token_parts *parts)
{
    struct lock_token prefix;

    (void)snprintf(prefix.text, sizeof(prefix.text), "%.*s.%" PRIx64 ".%" PRIu32 ".%" PRIx64 ".",
                   NODE_NAME_MAX, parts->node, parts->generation, parts->slot, parts->incarnation);
    return prefix;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return 16;
}

/* Takes one number up to `end` or the next dot. Refuses what printf would not have written (empty,
 * leading zeros, too large). Returns the place behind the dot (or `end`), NULL if it is no such
 * number. */
static const char *take_number(const char *p, const char *end, unsigned base, uint64_t max,
                               uint64_t *ret)
{
    const char *start = p;
    uint64_t value = 0;

    for (; p < end && *p != '.'; p++) {
        unsigned digit = (unsigned)digit_value(*p);

        if (digit >= base || (p > start && *start == '0') || value > (max - digit) / base) {
            return NULL;
        }
        value = value * base + digit;
    }
    if (p == start) {
        return NULL;
    }
    *ret = value;
    return p < end ? p + 1 : end;
}

int lock_token_parse(const char *text, size_t len, struct token_parts *ret)
{
    struct token_parts parts = {0};
    const char *end = text + len;
    const char *dot = len < LOCK_TOKEN_MAX ? memchr(text, '.', len) : NULL;
    uint64_t slot = 0;

    if (!dot || dot - text > NODE_NAME_MAX || memchr(text, '\0', (size_t)(dot - text))) {
        return -EINVAL;
    }
    memcpy(parts.node, text, (size_t)(dot - text));
    /* Each of the first three numbers is followed by a dot, the last one by the end. */
    const char *p = take_number(dot + 1, end, 16, UINT64_MAX, &parts.generation);
    p = p && p < end ? take_number(p, end, 10, UINT32_MAX, &slot) : NULL;
    p = p && p < end ? take_number(p, end, 16, UINT64_MAX, &parts.incarnation) : NULL;
    p = p && p < end ? take_number(p, end, 16, UINT64_MAX, &parts.claim) : NULL;
    if (p != end || end[-1] == '.' || !node_name_is_valid(parts.node)) {
        return -EINVAL;
    }
    parts.slot = (uint32_t)slot;
    *ret = parts;
    return 0;
}
