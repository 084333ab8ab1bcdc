/* The configuration file: where it is, and all that may be wrong with it. */
#ifndef SUPERVISOR_CONFIG_FILE_H
#define SUPERVISOR_CONFIG_FILE_H

#include "common/base/settings.h"

#define CONFIG_FILE_DEFAULT "/etc/outboxd/outboxd.yaml"

/* path NULL: CONFIG_FILE_DEFAULT if it is there, else the defaults. On success *ret is the
 * caller's; else -EINVAL or -errno, and the report says why in any case. */
int config_file_load(const char *path, struct settings **ret, struct settings_report *report);

#endif
