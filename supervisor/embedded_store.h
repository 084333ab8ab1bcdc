/* The store that runs when none is configured: valkey-server (or redis-server) on a Unix socket in
 * the state directory, supervised like the other children, stopped last. Contract §1.
 *
 * Never two servers on one folder: the server inherits the exclusive lock `store.lock`, which
 * nobody else holds. Who can't take it adopts the server that has it. Loop thread only. */
#ifndef SUPERVISOR_EMBEDDED_STORE_H
#define SUPERVISOR_EMBEDDED_STORE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/settings.h"

struct uv_loop_s;
struct embedded_store;
struct privileges;

struct embedded_store_options {
    struct uv_loop_s *loop;
    const char *state_dir;
    struct durability durability;
    const struct privileges *privileges; /* of the server */
    /* It ended without being asked to, and will be started again. */
    void (*died)(bool by_signal, void *arg);
    void *arg;
};

/* Checks paths, finds the program. Logs what is wrong; 0 or -errno. */
int embedded_store_create(struct embedded_store **ret,
                          const struct embedded_store_options *options);
/* unix:///…; lives as long as the embedded store. */
const char *embedded_store_url(const struct embedded_store *store);
/* Starts it, or looks for the one that runs. */
void embedded_store_start(struct embedded_store *store);
/* Whether another supervisor's server runs and we don't know its process yet: then ask it (INFO)
 * and tell us. */
bool embedded_store_wants_process(const struct embedded_store *store);
void embedded_store_adopt(struct embedded_store *store, pid_t pid);
/* Its process, if it is known; else 0. NULL is fine. */
pid_t embedded_store_process(const struct embedded_store *store);
bool embedded_store_is_adopted(const struct embedded_store *store);
/* Ends the server (adopted ones too) and starts it anew with our settings. */
void embedded_store_restart(struct embedded_store *store);
/* A child was reaped. True: it was the server. */
bool embedded_store_reaped(struct embedded_store *store, pid_t pid, int wait_status);
/* SIGTERM, SIGKILL after limit_ms; `stopped` runs once, never before this call returned.
 * leave_running: only forgets it (an adopted one whose old workers still need it). A second call
 * only shortens the limit. */
void embedded_store_stop(struct embedded_store *store, bool leave_running, int64_t limit_ms,
                         void (*stopped)(void *arg), void *arg);
/* Closes handles; run the loop, then destroy. */
void embedded_store_close(struct embedded_store *store);
void embedded_store_destroy(struct embedded_store **store);

#endif
