/* Compares names; resolves none. */
#include "api/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "common/base/settings.h"

bool origin_is_listed(const struct text_list *listed, struct span origin)
{
    for (size_t i = 0; i < listed->count && origin.ptr; i++) {
        if (span_equal(span_of(listed->items[i]), origin)) {
            return true;
        }
    }
    return false;
}

static struct span without_scheme(struct span origin)
{
    const char *at = origin.len > 3 ? memmem(origin.ptr, origin.len, "://", 3) : NULL;

    return at ? (struct span){at + 3, origin.len - (size_t)(at + 3 - origin.ptr)}
              : (struct span){NULL, 0};
}

static bool same_text(struct span a, struct span b)
{
    return a.ptr && a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* The name alone, without brackets and port. */
static struct span name_of(struct span host)
{
    if (host.len > 0 && host.ptr[0] == '[') {
        const char *end = memchr(host.ptr, ']', host.len);

        return end ? (struct span){host.ptr + 1, (size_t)(end - host.ptr) - 1} : host;
    }
    const char *colon = memchr(host.ptr, ':', host.len);

    return colon ? (struct span){host.ptr, (size_t)(colon - host.ptr)} : host;
}

static bool is_address(struct span name)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];

    if (name.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* localhost, or a name below it: browsers resolve those to loopback themselves. */
static bool is_localhost(struct span name)
{
    const struct span localhost = span_of("localhost");
    const size_t before = name.len > localhost.len ? name.len - localhost.len : 0;

    return same_text((struct span){name.ptr + before, name.len - before}, localhost) &&
           (before == 0 || name.ptr[before - 1] == '.');
}

static bool is_host_of_listed(const struct text_list *listed, struct span host)
{
    for (size_t i = 0; i < listed->count; i++) {
        if (same_text(without_scheme(span_of(listed->items[i])), host)) {
            return true;
        }
    }
    return false;
}

enum problem_id origin_judge(const struct text_list *listed, struct span origin, struct span host)
{
    if (host.ptr) {
        const struct span name = name_of(host);

        if (!is_address(name) && !is_localhost(name) && !is_host_of_listed(listed, host)) {
            return PROBLEM_FOREIGN_HOST;
        }
    }
    if (origin.ptr && !origin_is_listed(listed, origin) &&
        !same_text(without_scheme(origin), host)) {
        return PROBLEM_FOREIGN_ORIGIN;
    }
    return PROBLEM_NONE;
}
