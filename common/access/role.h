/* What a token may do at most. Each role may do all that those before it may. Pure. Contract §11.
 */
#ifndef COMMON_ACCESS_ROLE_H
#define COMMON_ACCESS_ROLE_H

#include <stdbool.h>

#include "common/core/span.h"

enum access_role {
    ROLE_CLIENT,   /* sends messages and sees what became of them */
    ROLE_OPERATOR, /* mends: retries, edits, removes, parks, pauses, sweeps */
    ROLE_ADMIN,    /* says where messages go, and removes a workspace with all that is in it */
    ROLE_COUNT,
};

/* False: there is no role of that name. */
bool access_role_parse(struct span name, enum access_role *ret);
const char *access_role_name(enum access_role role);

#endif
