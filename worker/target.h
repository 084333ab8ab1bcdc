/* Where a workspace's entries go: the configured target, or its own (contract §7, `PUT …/target`),
 * which the store keeps as JSON and every claim brings along. */
#ifndef WORKER_TARGET_H
#define WORKER_TARGET_H

#include <stdbool.h>

#include "common/base/settings.h"
#include "common/base/webhook_secret.h"
#include "common/core/span.h"

struct json_t;

/* Strings belong to the settings, or to what target_read gave. */
struct target {
    const char *url; /* base; NULL: none is configured */
    const char *username, *password;
    const char *secrets[WEBHOOK_SECRETS_MAX]; /* that sign requests, the newest first */
    size_t secret_count;
    bool has_executor; /* the workspace says itself what its target speaks */
    enum executor_id executor;
};

/* The configured one. */
struct target target_of_settings(const struct settings *settings);
/* Reads a workspace's own target (JSON of the store: untrusted). An empty `conf` gives `fallback`,
 * in whose URL `{workspace}` stands for the workspace.
 * Nothing of the fallback is mixed into an own target: no credentials go where they were not meant
 * for. *ret_owner holds the strings: json_decref. Returns 0, or -EBADMSG: it cannot be read, and
 * nothing may be sent anywhere. */
int target_read(struct span conf, const struct target *fallback, struct span workspace,
                struct target *ret, struct json_t **ret_owner);
/* The executor that carries out entries of the kind at this target. A kind that says http says how
 * its requests look: no target changes that. */
enum executor_id target_executor(const struct target *target, const struct kind *kind);

#endif
