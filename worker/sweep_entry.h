/* One entry of a sweep: looked up, and what follows applied if nobody has changed it meanwhile. */
#ifndef WORKER_SWEEP_ENTRY_H
#define WORKER_SWEEP_ENTRY_H

#include <stdbool.h>

struct swept_entry;
struct worker;

/* `has_answered`: the target said something about it. */
typedef void sweep_entry_done_cb(const char *workspace, bool has_answered, void *arg);
/* 0, and `done` runs once, perhaps before this returns; or -ENOMEM, and it never does. The entry is
 * copied. What became of it is counted (parked_sweep_outcomes_total). */
int sweep_entry_start(struct worker *worker, const struct swept_entry *entry,
                      sweep_entry_done_cb *done, void *arg);

#endif
