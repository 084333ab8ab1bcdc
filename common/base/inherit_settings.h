/* A child's configuration: what the supervisor checked, out of the inherited descriptor. */
#ifndef COMMON_BASE_INHERIT_SETTINGS_H
#define COMMON_BASE_INHERIT_SETTINGS_H

struct settings;

/* Reads INHERIT_CONFIG and closes it. `program` stands before what is printed to stderr. 0 or
 * -errno; the caller owns *ret. */
int inherit_read_settings(const char *program, struct settings **ret);

#endif
