/* Whether a process still makes progress, from the heartbeat that it writes into shared memory.
 * What stands there may be garbage: only whether it changed counts, never its value. Pure: the time
 * is given. */
#ifndef SUPERVISOR_WATCHDOG_H
#define SUPERVISOR_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct watchdog {
    int64_t last_beat;  /* as read */
    int64_t changed_ms; /* when we saw it change, CLOCK_MONOTONIC */
};

/* A process was started, or we ourselves stood still: what was seen before says nothing. */
void watchdog_reset(struct watchdog *watchdog, int64_t now_ms);
/* Looks at a beat; true: it has not changed for limit_ms. */
bool watchdog_has_expired(struct watchdog *watchdog, int64_t beat, int64_t now_ms,
                          int64_t limit_ms);

#endif
