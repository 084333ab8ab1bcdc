/* RFC 6750, as far as it concerns headers: a token in a URL would stand in logs and histories, so
 * none is taken from there, nor from a form. */
#include "api/auth.h"

#define REALM "Bearer realm=\"outboxd\""

enum bearer { BEARER_ABSENT, BEARER_MALFORMED, BEARER_GIVEN };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* `Bearer TOKEN`; another scheme is as good as no header. */
static enum bearer read_bearer(const struct auth_headers *headers, struct span *ret)
{
    static const char scheme[] = "bearer";
    struct span value = headers->authorization;

    if (headers->count == 0) {
        return BEARER_ABSENT;
    }
    if (headers->count > 1) { /* whoever stands before us may have looked at the other one */
        return BEARER_MALFORMED;
    }
    while (value.len > 0 && is_blank(value.ptr[value.len - 1])) {
        value.len--;
    }
    if (value.len < sizeof(scheme) - 1 || strncasecmp(value.ptr, scheme, sizeof(scheme) - 1) != 0 ||
        (value.len > sizeof(scheme) - 1 && !is_blank(value.ptr[sizeof(scheme) - 1]))) {
        return BEARER_ABSENT;
    }
    value.ptr += sizeof(scheme) - 1;
    value.len -= sizeof(scheme) - 1;
    while (value.len > 0 && is_blank(value.ptr[0])) {
        value.ptr++, value.len--;
    }
    *ret = value;
    return value.len > 0 ? BEARER_GIVEN : BEARER_MALFORMED;
}

enum problem_id auth_judge(const struct token_table *table, const struct auth_headers *headers,
                           enum route_id route, struct span workspace,
                           const struct access_token **ret_caller)
{
    const struct access_token *caller = NULL;
    struct span token = {0};

    *ret_caller = NULL;
    if (!table) {
        return PROBLEM_NONE;
    }
    const enum bearer bearer = read_bearer(headers, &token);

    if (bearer == BEARER_GIVEN) {
        caller = token_table_find(table, token);
    }
    if (route_is_open(route)) {
        *ret_caller = caller;
        return PROBLEM_NONE;
    }
    if (!caller) {
        return bearer == BEARER_ABSENT      ? PROBLEM_TOKEN_MISSING
               : bearer == BEARER_MALFORMED ? PROBLEM_INVALID_AUTHORIZATION
                                            : PROBLEM_TOKEN_INVALID;
    }
    if (route != ROUTE_NONE &&
        (caller->role < route_least_role(route) ||
         (route_has_workspace(route) && !access_token_may_touch(caller, workspace)))) {
        return PROBLEM_FORBIDDEN;
    }
    *ret_caller = caller;
    return PROBLEM_NONE;
}

const char *auth_challenge(enum problem_id problem)
{
    return problem == PROBLEM_TOKEN_MISSING           ? REALM
           : problem == PROBLEM_INVALID_AUTHORIZATION ? REALM
               ", error=\"invalid_request\", error_description=\"one header, `Bearer TOKEN`\""
           : problem == PROBLEM_TOKEN_INVALID ? REALM
               ", error=\"invalid_token\", error_description=\"no such token is known\""
           : problem == PROBLEM_FORBIDDEN ? REALM ", error=\"insufficient_scope\""
                                          : NULL;
}
