/* Which route a request line means. Pure; the table is routes.def. Contract §7. */
#ifndef API_ROUTER_H
#define API_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/access/role.h"
#include "common/core/span.h"

enum http_method {
    HTTP_GET,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_METHOD_COUNT,
    HTTP_OTHER = HTTP_METHOD_COUNT,
};
enum http_method http_method_of(const char *name);
const char *http_method_name(enum http_method method);

enum route_id {
#define ROUTE(id, method, pattern, body, access, handler, label) ROUTE_##id,
#include "api/routes.def"
    ROUTE_COUNT,
    ROUTE_NONE = ROUTE_COUNT,
};

/* Spans of the path; empty where the route has no such segment. */
struct route_params {
    struct span workspace, session, id;
};
struct route_match {
    enum route_id route; /* ROUTE_NONE: see allowed */
    unsigned allowed; /* bits 1 << http_method of what this path takes; 0: there is nothing there */
    struct route_params params;
};
/* `path` without query. */
struct route_match route_find(enum http_method method, struct span path);

/* Metric label values in the order of the table, for the exposition. */
extern const char *const route_labels[ROUTE_COUNT];
/* Whether anybody may ask, without a token too. False for ROUTE_NONE. */
bool route_is_open(enum route_id route);
/* What a token has to be good for at least (nothing for an open route). */
enum access_role route_least_role(enum route_id route);
/* Whether its path names the workspace that it is about; else its handler shows only what the
 * caller may see (request_may_see). */
bool route_has_workspace(enum route_id route);
/* The type that its body must have; NULL: it takes none. */
const char *route_content_type(enum route_id route);
/* Whether its requests are counted as accepts. */
bool route_is_accept(enum route_id route);

#endif
