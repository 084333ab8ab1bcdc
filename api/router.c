/* Matches paths against the table, segment by segment. */
#include "api/router.h"

enum body_rule { BODY_NONE, BODY_JSON, BODY_NDJSON };

enum route_access {
    ACCESS_OPEN,
    ACCESS_CLIENT,
    ACCESS_OPERATOR,
    ACCESS_ADMIN,
};

struct route {
    const char *pattern;
    enum http_method method;
    enum body_rule body;
    enum route_access access;
};

static const struct route routes[ROUTE_COUNT] = {
#define ROUTE(id, method_, pattern_, body_, access_, handler, label)                               \
    [ROUTE_##id] = {.method = HTTP_##method_,                                                      \
                    .pattern = pattern_,                                                           \
                    .body = BODY_##body_,                                                          \
                    .access = ACCESS_##access_},
#include "api/routes.def"
};

const char *const route_labels[ROUTE_COUNT] = {
#define ROUTE(id, method, pattern, body, access, handler, label) [ROUTE_##id] = label,
#include "api/routes.def"
};

static const char *const method_names[HTTP_METHOD_COUNT] = {
    [HTTP_GET] = "GET",     [HTTP_POST] = "POST",     [HTTP_PUT] = "PUT",
    [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
};

enum http_method http_method_of(const char *name)
{
    for (unsigned i = 0; i < HTTP_METHOD_COUNT; i++) {
        if (strcmp(name, method_names[i]) == 0) {
            return (enum http_method)i;
        }
    }
    return HTTP_OTHER;
}

const char *http_method_name(enum http_method method)
{
    return method < HTTP_METHOD_COUNT ? method_names[method] : "";
}

bool route_is_open(enum route_id route)
{
    return route < ROUTE_COUNT && routes[route].access == ACCESS_OPEN;
}

enum access_role route_least_role(enum route_id route)
{
    static const enum access_role roles[] = {
        [ACCESS_OPEN] = ROLE_CLIENT,
        [ACCESS_CLIENT] = ROLE_CLIENT,
        [ACCESS_OPERATOR] = ROLE_OPERATOR,
        [ACCESS_ADMIN] = ROLE_ADMIN,
    };

    return route < ROUTE_COUNT ? roles[routes[route].access] : ROLE_ADMIN;
}

bool route_has_workspace(enum route_id route)
{
    return route < ROUTE_COUNT && strstr(routes[route].pattern, "{ws}");
}

const char *route_content_type(enum route_id route)
{
    static const char *const types[] = {
        [BODY_NONE] = NULL,
        [BODY_JSON] = "application/json",
        [BODY_NDJSON] = "application/x-ndjson",
    };

    return route < ROUTE_COUNT ? types[routes[route].body] : NULL;
}

bool route_is_accept(enum route_id route)
{
    return route == ROUTE_ACCEPT || route == ROUTE_ACCEPT_LANE;
}

/* Takes the next segment, up to a slash or the end, off the front. */
static struct span take_segment(struct span *rest)
{
    const char *slash = rest->len > 0 ? memchr(rest->ptr, '/', rest->len) : NULL;
    struct span segment = {rest->ptr, slash ? (size_t)(slash - rest->ptr) : rest->len};

    rest->ptr += segment.len;
    rest->len -= segment.len;
    return segment;
}

static bool match_segment(struct span pattern, struct span segment, struct route_params *params)
{
    if (pattern.len == 0 || pattern.ptr[0] != '{') {
        return span_equal(pattern, segment);
    }
    if (segment.len == 0) {
        return false;
    }
    if (span_equal(pattern, span_of("{ws}"))) {
        params->workspace = segment;
    } else if (span_equal(pattern, span_of("{ses}"))) {
        params->session = segment;
    } else {
        params->id = segment;
    }
    return true;
}

static bool match(struct span pattern, struct span path, struct route_params *params)
{
    while (pattern.len > 0 && path.len > 0) {
        if (path.ptr[0] != '/') {
            return false;
        }
        pattern.ptr++, pattern.len--; /* every segment of a pattern begins with a slash */
        path.ptr++, path.len--;
        struct span wanted = take_segment(&pattern), given = take_segment(&path);

        if (!match_segment(wanted, given, params)) {
            return false;
        }
    }
    return pattern.len == 0 && path.len == 0;
}

struct route_match route_find(enum http_method method, struct span path)
{
    struct route_match found = {.route = ROUTE_NONE};

    for (unsigned i = 0; i < ROUTE_COUNT; i++) {
        struct route_params params = {0};

        if (!match(span_of(routes[i].pattern), path, &params)) {
            continue;
        }
        found.allowed |= 1u << routes[i].method;
        if (routes[i].method == method) {
            found.route = (enum route_id)i;
            found.params = params;
            break;
        }
    }
    return found;
}
