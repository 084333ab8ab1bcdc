/* Words to the service manager (sd_notify), one datagram each. Nothing happens where none
 * listens; never waits. Every `status` is one line for people (`systemctl
 * status`). Contract §10.
 *
 *   starting --ready--> serving --reloading--> … --ready--> serving --stopping--> …  */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

#include <stdbool.h>

struct uv_timer_s;

/* Whether anybody listens: else collecting what there is to say is for nothing. */
bool notify_is_heard(void);
/* A new line. While a reload runs, its own stays: nothing is sent. */
void notify_status(const char *status);
/* Serving: at the end of a start, of a reload and of an upgrade, also of one that failed. */
void notify_ready(const char *status);
/* A reload or an upgrade begins; carries the moment (CLOCK_MONOTONIC, for Type=notify-reload).
 * notify_ready() ends it. */
void notify_reloading(const char *status);
void notify_stopping(const char *status);
/* Now and then: sends the state again that the service manager could not take. */
void notify_retry(void);

/* The service manager's watchdog: if it wants to hear from this process ($WATCHDOG_USEC,
 * $WATCHDOG_PID), starts `timer` (initialised, the caller's), which says so at half of that
 * interval. Then the loop's turning is what is watched. */
void notify_watchdog_start(struct uv_timer_s *timer);

#endif
