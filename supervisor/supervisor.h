/* The supervisor's whole run: start, watch, stop. Contract §1, §8, §10. */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "common/base/settings.h"

/* Runs until stopped by a signal, or until the start fails. The settings stay the caller's, but
 * change: state_dir becomes absolute, store_url the embedded store's. Returns the exit status: 0
 * drained, 1 failed or ended at once, 2 bad configuration. */
int supervisor_run(struct settings *settings);

/* `--check`: whether this binary could start with these settings, without starting anything. Logs
 * what is missing. 0 or -errno. */
int supervisor_check(const struct settings *settings);

#endif
