/* Executing another program in our own place, once it has proven itself. Contract §10 (USR2).
 *
 *   idle --start--> the new program runs with --check --ends with 0--> `proven`: then execute it
 *                                     \--anything else, or too long--> `refused`
 *
 * Loop thread only. Nothing here knows what is handed over: upgrade_state.h. */
#ifndef SUPERVISOR_UPGRADE_H
#define SUPERVISOR_UPGRADE_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "supervisor/programs.h"

struct upgrade_state;

struct upgrade_options {
    struct uv_loop_s *loop;
    const char *argv0;  /* as we were called: where the new program is looked for */
    char *const *argv;  /* with which it is executed */
    const char *config; /* --config's value, or NULL */
    /* The check's end. Refused: why, for people. */
    void (*checked)(bool is_proven, const char *why, void *arg);
    void *arg;
};

struct upgrade {
    struct upgrade_options options;
    struct program_path program;
    uv_timer_t timer;
    pid_t check; /* 0: none runs */
    bool is_late;
};

/* Remembers where this program is before anybody replaces it. 0 or -ENOENT. */
int upgrade_init(struct upgrade *upgrade, const struct upgrade_options *options);
bool upgrade_is_checking(const struct upgrade *upgrade);
/* Runs the check; `checked` comes later, or 0 is not returned. */
int upgrade_check(struct upgrade *upgrade, const struct upgrade_state *state);
/* True: the process was the check. */
bool upgrade_reaped(struct upgrade *upgrade, pid_t pid, int wait_status);
/* Ends a check that runs; no word of it any more. */
void upgrade_stop(struct upgrade *upgrade);
/* Becomes the program; every descriptor of the state stays open. Comes back only if that failed:
 * -errno, and everything is as it was. */
int upgrade_execute(struct upgrade *upgrade, const struct upgrade_state *state);
/* Closes the handle. */
void upgrade_close(struct upgrade *upgrade);

#endif
