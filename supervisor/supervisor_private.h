/* What supervisor.c (start and run) and supervisor_stop.c (drain and end) share: the one struct
 * that wires the parts. */
#ifndef SUPERVISOR_SUPERVISOR_PRIVATE_H
#define SUPERVISOR_SUPERVISOR_PRIVATE_H

#include <stdbool.h>
#include <uv.h>

#include "common/shm/shm.h"
#include "common/shm/wake.h"
#include "common/store/store.h"
#include "supervisor/children.h"
#include "supervisor/embedded_store.h"
#include "supervisor/generation.h"
#include "supervisor/listen.h"
#include "supervisor/preflight.h"
#include "supervisor/recovery.h"
#include "supervisor/signals.h"

/* In this order, and never back. A stop enters DRAINING from anywhere before it. */
enum phase {
    PHASE_STORE,          /* the store is started and examined */
    PHASE_RECOVERY,       /* what dead processes held is taken back */
    PHASE_BINDING,        /* the addresses may still be held by a dead supervisor's API */
    PHASE_RUNNING,        /* children are there */
    PHASE_DRAINING,       /* children finish */
    PHASE_OTHERS,         /* an earlier generation's workers still need our embedded store */
    PHASE_CLOSING_STORE,  /* our connections end */
    PHASE_STOPPING_STORE, /* the embedded server ends, last */
    PHASE_OVER,
};

struct supervisor {
    struct settings *settings; /* the caller's */
    uv_loop_t loop;
    enum phase phase;
    int exit_status;
    bool is_ready;         /* all children served once: told to systemd */
    bool has_store_failed; /* told that the store is away */
    bool is_asking_process;

    struct generation generation;
    struct signals signals;
    struct shm *shm;
    struct metrics *metrics; /* own slot of shm */
    struct wake_set wakes;
    struct listeners listeners;
    struct embedded_store *embedded; /* NULL: store.url is configured */
    struct store *store;
    struct preflight preflight;
    struct recovery *recovery;
    struct children *children;
    struct program_path api, worker;
    int config_fd;
    int lifeline[2];
    char *shown_url; /* owned; the store's URL without its password */

    uv_timer_t tick;        /* heartbeat and watchdog */
    uv_timer_t phase_timer; /* the phase's own: next bind, next look at other generations */
    int64_t phase_since_ms;
};

/* Everything that a start needs but the connection to the store. Logs what is wrong; 0 or -errno.
 */
int supervisor_set_up(struct supervisor *supervisor);
/* After the loop has ended: gives back whatever there is. */
void supervisor_tear_down(struct supervisor *supervisor);

void supervisor_enter(struct supervisor *supervisor, enum phase phase);
/* The start failed: logged already. Ends with status 1. */
void supervisor_fail(struct supervisor *supervisor);
/* TERM, INT (drain; the second time: now) and QUIT (now). */
void supervisor_stop(struct supervisor *supervisor, bool is_now);
/* While draining: a child's state changed. */
void supervisor_stop_progress(struct supervisor *supervisor);

#endif
