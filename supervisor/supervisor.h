/* The supervisor's whole run: start, watch, change, stop. Contract §1, §8, §10. */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "supervisor/config_file.h"

struct upgrade_state;

struct supervisor_options {
    const char *config; /* --config's value, or NULL */
    char *const *argv;  /* as we were called: for the next program (USR2) */
};

/* Runs until stopped by a signal, or until the start fails. Takes over what the
 * configuration holds. `state`: what
 * an older program handed over (descriptors are taken over), NULL for a start from nothing. Returns
 * the exit status: 0 drained, 1 failed or ended at once, 2 bad configuration. */
int supervisor_run(struct configuration *configuration, const struct supervisor_options *options,
                   const struct upgrade_state *state);

/* `--check`: whether this program could start with these settings, without starting anything; with
 * a state, whether it could take over from the one that runs: then the store is asked, too. Logs
 * what is missing. 0 or -errno. */
int supervisor_check(const struct settings *settings, const struct upgrade_state *state);

#endif
