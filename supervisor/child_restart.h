/* What the deaths of a child mean for its next start, and how operators see it: the log tells each
 * delay, the process table (and with it /readyz, the metrics and `outboxctl top`) the state at any
 * time. When: restart_policy.h. Loop thread only. */
#ifndef SUPERVISOR_CHILD_RESTART_H
#define SUPERVISOR_CHILD_RESTART_H

#include <stdint.h>

#include "common/shm/metrics_layout.h"

struct child;

/* Its process ended, or could not be started; before the child's state changes. The end of one that
 * nobody wants any more (replaced, one too many, a stop) is no death: it is held against no later
 * process in that slot. */
void child_restart_note_death(struct child *child, enum label_death_reason reason);
/* The time until the next start, from now. */
int64_t child_restart_delay_ms(struct child *child);
/* At every look of the watchdog: what has served long enough is not held to its deaths any more. */
void child_restart_look(struct child *child, int64_t now_ms);

#endif
