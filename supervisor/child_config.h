/* The configuration as children get it: sealed memfds, which nobody can change. Contract §1
 * (inherited descriptors only). */
#ifndef SUPERVISOR_CHILD_CONFIG_H
#define SUPERVISOR_CHILD_CONFIG_H

#include "common/access/credentials.h"
#include "common/base/settings.h"

/* Descriptors (CLOEXEC), owned; -1: none. */
struct child_config {
    int settings;    /* the checked settings with secrets, as YAML */
    int credentials; /* for the API only: who may call, and the key of its listener */
};

#define CHILD_CONFIG_NONE ((struct child_config){-1, -1})

/* 0 or -errno. */
int child_config_create(const struct settings *settings, const struct credentials *credentials,
                        struct child_config *ret);
void child_config_close(struct child_config *config);
/* Another description of the same file, at its start: each child has a position of its own. -errno.
 */
int child_config_reopen(int fd);

#endif
