/* The configuration file: where it is, and all that may be wrong with it and the files it names. */
#ifndef SUPERVISOR_CONFIG_FILE_H
#define SUPERVISOR_CONFIG_FILE_H

#include "common/access/credentials.h"
#include "common/base/settings.h"

#define CONFIG_FILE_DEFAULT "/etc/outboxd/outboxd.yaml"

struct configuration {
    struct settings *settings;      /* owned */
    struct credentials credentials; /* of the API: what stands in the files that settings name */
};

/* What it is read for: what has run out is a mistake, but no reason not to start. */
enum config_purpose { CONFIG_START, CONFIG_CHECK };

/* path NULL: CONFIG_FILE_DEFAULT if it is there, else the defaults. On success *ret is the
 * caller's; else -EINVAL or -errno, and the report says why in any case. */
int config_file_load(const char *path, enum config_purpose purpose, struct configuration *ret,
                     struct settings_report *report);
/* Frees; it holds nothing then. */
void configuration_done(struct configuration *configuration);

#endif
