/* The configuration as children get it: a sealed memfd. Contract §1 (inherited descriptors only).
 */
#ifndef SUPERVISOR_CHILD_CONFIG_H
#define SUPERVISOR_CHILD_CONFIG_H

#include "common/base/settings.h"

/* The checked settings with secrets as YAML, in memory that nobody can change. Returns the
 * descriptor (CLOEXEC) or -errno. */
int child_config_create(const struct settings *settings);
/* Another description of the same file, at its start: each child has a position of its own. -errno.
 */
int child_config_reopen(int fd);

#endif
