/* Address ranges, compared bit by bit in IPv6 form. */
#include "worker/address_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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

/* IPv6 addresses that lead to an IPv4 address elsewhere: their prefix, and where its bytes stand.
 */
static const struct embedding {
    uint8_t prefix[12];
    unsigned bits;
    unsigned at[4];
    bool is_inverted;
} embeddings[] = {
    {{0}, 96, {12, 13, 14, 15}, false},                                  /* IPv4-compatible */
    {{[8] = 0xff, [9] = 0xff}, 96, {12, 13, 14, 15}, false},             /* IPv4-translated */
    {{0x00, 0x64, 0xff, 0x9b}, 96, {12, 13, 14, 15}, false},             /* NAT64 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, {6, 7, 9, 10}, false},    /* of a site, as a /48 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, {12, 13, 14, 15}, false}, /* and as a /96 of it */
    {{0x20, 0x02}, 16, {2, 3, 4, 5}, false},                             /* 6to4 */
    {{0x20, 0x01, 0x00, 0x00}, 32, {12, 13, 14, 15}, true},              /* Teredo */
};

/* The IPv4 address a.b.c.d as ::ffff:a.b.c.d, so that both forms are one. */
static void map_v4(const uint8_t v4[4], uint8_t bytes[16])
{
    memset(bytes, 0, 10);
    bytes[10] = bytes[11] = 0xff;
    memcpy(bytes + 12, v4, 4);
}

/* Returns the bits before the address in its IPv6 form, 0 or 96. */
static int parse_address(const char *text, uint8_t bytes[16])
{
    uint8_t v4[4];

    if (inet_pton(AF_INET, text, v4) == 1) {
        map_v4(v4, bytes);
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

static bool has_prefix(const uint8_t *prefix, unsigned bits, const uint8_t bytes[16])
{
    const unsigned whole = bits / 8;
    const unsigned rest = bits % 8;

    if (memcmp(prefix, bytes, whole) != 0) {
        return false;
    }
    return rest == 0 || (prefix[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

static bool any_holds(const struct range *ranges, size_t count, const uint8_t bytes[16])
{
    for (size_t i = 0; i < count; i++) {
        if (has_prefix(ranges[i].bytes, ranges[i].bits, bytes)) {
            return true;
        }
    }
    return false;
}

/* The IPv4 address that `bytes` lead to, mapped; false: not by this way. What would be one of
 * 0.0.0.0/8 is none: so `::1` stays what it is. */
static bool unwrap(const struct embedding *way, const uint8_t bytes[16], uint8_t ret[16])
{
    uint8_t v4[4];

    if (!has_prefix(way->prefix, way->bits, bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(v4); i++) {
        v4[i] = way->is_inverted ? (uint8_t)~bytes[way->at[i]] : bytes[way->at[i]];
    }
    map_v4(v4, ret);
    return v4[0] != 0;
}

static bool leads_to_denied(const struct address_rules *rules, const uint8_t bytes[16])
{
    for (size_t i = 0; i < sizeof(embeddings) / sizeof(embeddings[0]); i++) {
        uint8_t inner[16];

        if (unwrap(&embeddings[i], bytes, inner) &&
            any_holds(rules->deny, rules->deny_count, inner)) {
            return true;
        }
    }
    return false;
}

/* The kernel takes a connection to it to this machine, past every range that names loopback. */
static bool is_unspecified(const uint8_t bytes[16])
{
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t v6[16] = {0};

    return memcmp(bytes, v4, sizeof(v4)) == 0 || memcmp(bytes, v6, sizeof(v6)) == 0;
}

static bool permits(const struct address_rules *rules, const uint8_t bytes[16])
{
    if (is_unspecified(bytes) || any_holds(rules->deny, rules->deny_count, bytes) ||
        leads_to_denied(rules, bytes)) {
        return false;
    }
    return rules->allow_count == 0 || any_holds(rules->allow, rules->allow_count, bytes);
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
    return parse_address(plain, bytes) >= 0 && permits(rules, bytes);
}

bool address_rules_permit_socket(const struct address_rules *rules, const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    uint8_t bytes[16];

    switch (address->sa_family) {
    case AF_INET:
        memcpy(&v4, address, sizeof(v4));
        map_v4((const uint8_t *)&v4.sin_addr, bytes);
        return permits(rules, bytes);
    case AF_INET6:
        memcpy(&v6, address, sizeof(v6));
        return permits(rules, v6.sin6_addr.s6_addr);
    default:
        return false;
    }
}
