/* What supervisor.c (start and run), supervisor_change.c (reload, upgrade, number of workers) and
 * supervisor_stop.c (drain and end) share: the one struct that wires the parts. */
#ifndef SUPERVISOR_SUPERVISOR_PRIVATE_H
#define SUPERVISOR_SUPERVISOR_PRIVATE_H

#include <stdbool.h>
#include <uv.h>

#include "common/access/credentials.h"
#include "common/base/kind_labels.h"
#include "common/shm/shm.h"
#include "common/shm/wake.h"
#include "common/store/store.h"
#include "supervisor/children.h"
#include "supervisor/embedded_store.h"
#include "supervisor/generation.h"
#include "supervisor/listen.h"
#include "supervisor/preflight.h"
#include "supervisor/privileges.h"
#include "supervisor/recovery.h"
#include "supervisor/signals.h"
#include "supervisor/status.h"
#include "supervisor/upgrade.h"
#include "supervisor/upgrade_state.h"

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
    const struct supervisor_options *options;
    /* Owned. What is in force; as it was first started, before anything was resolved (settings that
     * need a restart are compared with it); what comes with the replacement under way, or NULL. */
    struct settings *settings, *configured, *next;
    /* Of the API, with `settings` and with `next`. */
    struct credentials credentials, next_credentials;
    uv_loop_t loop;
    enum phase phase;
    int exit_status;
    bool is_ready;         /* all children served once: told to systemd */
    bool has_store_failed; /* told that the store is away */
    bool is_asking_process;
    bool is_upgraded; /* children of an older program serve: nothing here is a reason to end them */
    /* Signals that came while something else was under way. */
    struct {
        bool reload, upgrade;
        int workers;
    } pending;

    struct privileges privileges; /* of children and embedded store */
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
    struct kind_labels kinds;
    struct upgrade upgrade;
    struct program_path api, worker;
    int lifeline[2];
    char *shown_url; /* owned; the store's URL without its password */

    struct status status; /* for the service manager */

    uv_timer_t tick;        /* heartbeat and watchdog */
    uv_timer_t alive;       /* heartbeat to the service manager */
    uv_timer_t phase_timer; /* the phase's own: next bind, next look at other generations */
    int64_t phase_since_ms;
};

/* Everything that a start needs but the connection to the store. Logs what is wrong; 0 or -errno.
 */
int supervisor_set_up(struct supervisor *supervisor, const struct upgrade_state *state);
/* The children's user, as the settings in force say. Logs what is wrong; 0 or -errno. */
int supervisor_find_privileges(struct supervisor *supervisor);
int supervisor_make_segment(struct supervisor *supervisor);
/* supervisor_takeover.c: what an older program handed over, first all but the children. */
int supervisor_take_over(struct supervisor *supervisor, const struct upgrade_state *state);
int supervisor_restore_children(struct supervisor *supervisor, const struct upgrade_state *state);
/* Settings of the state: as it was started, as it runs; `fresh` keeps what needs a restart. Logs
 * what is wrong; the caller frees in any case. */
int takeover_settings(const struct upgrade_state *state, struct settings *fresh,
                      struct settings **ret_configured, struct settings **ret_running);
int supervisor_find_programs(struct program_path *api, struct program_path *worker);
/* A configuration for children, with their kinds in the register. 0 or -errno (logged). */
int supervisor_child_config(struct supervisor *supervisor, const struct settings *settings,
                            const struct credentials *credentials, struct child_config *ret);
/* Makes the children's object; they run from supervisor_set_up on if an older program started them.
 */
int supervisor_make_children(struct supervisor *supervisor, uint32_t foreign);
/* After the loop has ended: gives back whatever there is. */
void supervisor_tear_down(struct supervisor *supervisor);

void supervisor_enter(struct supervisor *supervisor, enum phase phase);
/* The start failed: logged already. Ends with status 1. */
void supervisor_fail(struct supervisor *supervisor);
/* TERM, INT (drain; the second time: now) and QUIT (now). */
void supervisor_stop(struct supervisor *supervisor, bool is_now);
/* HUP, USR2, TTIN, TTOU: now, or when what is under way has ended. */
void supervisor_reload(struct supervisor *supervisor);
void supervisor_upgrade(struct supervisor *supervisor);
void supervisor_change_workers(struct supervisor *supervisor, int by);
/* settings_keep_running, and what is wrong logged. */
int supervisor_keep_running(struct settings *fresh, const struct settings *configured,
                            const struct settings *running, struct buf *ret_left);
/* Puts `next` in force by replacing all children. */
void supervisor_replace_children(struct supervisor *supervisor);
void supervisor_replaced(bool is_done, void *arg);
void supervisor_upgrade_checked(bool is_proven, const char *why, void *arg);
/* The configuration of the start is in force. */
void supervisor_tell_start(struct supervisor *supervisor);
void supervisor_do_pending(struct supervisor *supervisor);
/* While draining: a child's state changed. */
void supervisor_stop_progress(struct supervisor *supervisor);

#endif
