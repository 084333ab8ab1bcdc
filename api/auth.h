/* Who calls, and what they may: the token in a request's head, and the least role of its route.
 * Pure but for the table it is made from. Contract §11. */
#ifndef API_AUTH_H
#define API_AUTH_H

#include <stdbool.h>

#include "api/problem.h"
#include "api/router.h"
#include "common/access/token_table.h"
#include "common/core/span.h"

/* Headers of one request. */
struct auth_headers {
    unsigned count;            /* of headers called Authorization */
    struct span authorization; /* the value of one of them */
};

/* Judges a request. `table` NULL: nobody is asked for a token. `route` may be ROUTE_NONE, which
 * only somebody with a token is told. PROBLEM_NONE: it may go on; *ret_caller is whose token it
 * shows, NULL: nobody's that we know. Whether the workspace exists plays no part: who may not touch
 * it is told the same either way. */
enum problem_id auth_judge(const struct token_table *table, const struct auth_headers *headers,
                           enum route_id route, struct span workspace,
                           const struct access_token **ret_caller);
/* The value of WWW-Authenticate that goes with a problem; NULL: none (RFC 6750 §3). */
const char *auth_challenge(enum problem_id problem);

#endif
