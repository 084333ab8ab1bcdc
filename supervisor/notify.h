/* Words to the service manager (sd_notify), one datagram each. Nothing happens where none listens,
 * or where this build has no libsystemd. Every `status` is one line for people (`systemctl
 * status`). Contract §10.
 *
 *   starting --ready--> serving --reloading--> … --ready--> serving --stopping--> …  */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

void notify_status(const char *status);
/* Serving: at the end of a start, of a reload and of an upgrade, also of one that failed. */
void notify_ready(const char *status);
/* A reload or an upgrade begins; carries the moment (CLOCK_MONOTONIC, for Type=notify-reload).
 * notify_ready() ends it. */
void notify_reloading(const char *status);
void notify_stopping(const char *status);

#endif
