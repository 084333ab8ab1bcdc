/* Address ranges, compared bit by bit in IPv6 form. */
#include "worker/address_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings.h"

struct range {
    uint8_t bytes[16];
    unsigned bits; /* of the 128 that must be equal */
};

struct address_rules {
    struct range *allow, *deny;
    size_t allow_count, deny_count;
};

/* An IPv4 address a.b.c.d becomes ::ffff:a.b.c.d, so that both forms are one. Returns the bits
 * before it, 0 or 96. */
static int parse_address(const char *text, uint8_t bytes[16])
{
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) == 1) {
        memset(bytes, 0, 10);
        bytes[10] = bytes[11] = 0xff;
        memcpy(bytes + 12, &v4, 4);
        return 96;
    }
    return inet_pton(AF_INET6, text, bytes) == 1 ? 0 : -EINVAL;
}

static int parse_range(const char *text, struct range *ret)
{
    char address[64];
    const char *slash = strchr(text, '/');
    const size_t len = slash ? (size_t)(slash - text) : strlen(text);

    if (len == 0 || len >= sizeof(address)) {
        return -EINVAL;
    }
    memcpy(address, text, len);
    address[len] = '\0';
    const int before = parse_address(address, ret->bytes);

    if (before < 0) {
        return before;
    }
    ret->bits = 128;
    if (slash) {
        char *end;
        const unsigned long bits = strtoul(slash + 1, &end, 10);

        if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || bits > 128U - (unsigned)before) {
            return -EINVAL;
        }
        ret->bits = (unsigned)before + (unsigned)bits;
    }
    return 0;
}

static int parse_list(const struct text_list *list, struct range **ret, size_t *ret_count,
                      const char **ret_bad)
{
    struct range *ranges = calloc(list->count + 1, sizeof(*ranges));

    if (!ranges) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (parse_range(list->items[i], &ranges[i]) < 0) {
            *ret_bad = list->items[i];
            free(ranges);
            return -EINVAL;
        }
    }
    *ret = ranges;
    *ret_count = list->count;
    return 0;
}

int address_rules_create(const struct text_list *allow, const struct text_list *deny,
                         struct address_rules **ret, const char **ret_bad)
{
    struct address_rules *rules = calloc(1, sizeof(*rules));
    int err;

    if (!rules) {
        return -ENOMEM;
    }
    err = parse_list(allow, &rules->allow, &rules->allow_count, ret_bad);
    if (err == 0) {
        err = parse_list(deny, &rules->deny, &rules->deny_count, ret_bad);
    }
    if (err < 0) {
        address_rules_destroy(&rules);
        return err;
    }
    *ret = rules;
    return 0;
}

void address_rules_destroy(struct address_rules **rules_ptr)
{
    struct address_rules *rules = *rules_ptr;

    if (rules) {
        free(rules->allow);
        free(rules->deny);
        free(rules);
        *rules_ptr = NULL;
    }
}

static bool holds(const struct range *range, const uint8_t bytes[16])
{
    const unsigned whole = range->bits / 8;
    const unsigned rest = range->bits % 8;

    if (memcmp(range->bytes, bytes, whole) != 0) {
        return false;
    }
    return rest == 0 || (range->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

static bool any_holds(const struct range *ranges, size_t count, const uint8_t bytes[16])
{
    for (size_t i = 0; i < count; i++) {
        if (holds(&ranges[i], bytes)) {
            return true;
        }
    }
    return false;
}

bool address_rules_permit(const struct address_rules *rules, const char *address)
{
    uint8_t bytes[16];
    char plain[64];
    const size_t len = strcspn(address, "%"); /* a scope follows a link-local address */

    if (len >= sizeof(plain)) {
        return false;
    }
    memcpy(plain, address, len);
    plain[len] = '\0';
    if (parse_address(plain, bytes) < 0 || any_holds(rules->deny, rules->deny_count, bytes)) {
        return false;
    }
    return rules->allow_count == 0 || any_holds(rules->allow, rules->allow_count, bytes);
}
