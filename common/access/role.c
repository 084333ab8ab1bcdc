/* Names of roles. */
#include "common/access/role.h"

static const char *const names[ROLE_COUNT] = {
    [ROLE_CLIENT] = "client",
    [ROLE_OPERATOR] = "operator",
    [ROLE_ADMIN] = "admin",
};

bool access_role_parse(struct span name, enum access_role *ret)
{
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        if (span_equal(name, span_of(names[role]))) {
            *ret = (enum access_role)role;
            return true;
        }
    }
    return false;
}

const char *access_role_name(enum access_role role)
{
    return (unsigned)role < ROLE_COUNT ? names[role] : "";
}
