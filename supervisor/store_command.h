/* What the embedded server is started with: its paths and its command line. */
#ifndef SUPERVISOR_STORE_COMMAND_H
#define SUPERVISOR_STORE_COMMAND_H

#include <limits.h>
#include <stddef.h>
#include <sys/un.h>

#include "common/base/embedded_url.h"
#include "common/base/settings.h"

#define STORE_STATE_DIR_MAX                                                                        \
    (sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof(EMBEDDED_SOCKET_NAME))
#define STORE_ARGS_MAX 64

struct store_paths {
    char folder[PATH_MAX]; /* its own, 0700 */
    char log[PATH_MAX];
    char lock[PATH_MAX];
    char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
    char url[EMBEDDED_URL_MAX]; /* unix:///…, percent-encoded */
};
/* Names them all and makes the folder. -ENAMETOOLONG: state_dir is longer than STORE_STATE_DIR_MAX;
 * -errno. */
int store_paths_make(struct store_paths *ret, const char *state_dir);
/* The last line of its log file, for the message about its death; empty if there is none. */
void store_log_last_line(const struct store_paths *paths, char *ret, size_t cap);

struct store_command {
    char *argv[STORE_ARGS_MAX]; /* points into `program`, `paths` and literals */
};
void store_command_make(struct store_command *ret, const char *program,
                        const struct store_paths *paths, struct durability durability);

#endif
