/* The listening sockets of the setting `listen`, bound once by the supervisor and shared by every
 * API process. */
#ifndef SUPERVISOR_LISTEN_H
#define SUPERVISOR_LISTEN_H

#include <stddef.h>

#include "common/base/inherit.h"
#include "common/base/settings.h"

struct listeners {
    int fds[INHERIT_LISTEN_MAX]; /* -1: not open; in the order of `listen` */
    size_t count;                /* 0 until all are open */
};

void listeners_init(struct listeners *listeners);
/* Socket activation: takes the listening sockets that a service manager passed to this process
 * ($LISTEN_FDS, $LISTEN_PID), if any, instead of those of `listen`, and forgets these variables. A
 * supervisor that is started again gets the same ones: clients wait meanwhile and are not refused.
 * Logs what it takes, and what is wrong with it. Returns 0 (also if there are none) or
 * -errno. */
int listeners_take_passed(struct listeners *listeners, const struct settings *settings);
/* Opens those that are not open yet; nothing if there are sockets that were passed or handed on.
 * Returns 0, or -errno and the address and a reason for people (static string, or NULL: the error
 * says it). -EADDRINUSE: may be called again later, when an API that drains has closed its own. */
int listeners_open(struct listeners *listeners, const struct text_list *addresses,
                   const char **ret_address, const char **ret_reason);
/* Closes ours; children keep theirs. */
void listeners_close(struct listeners *listeners);

#endif
