/* Words to systemd (sd_notify); nothing where it is not there. */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

void notify_status(const char *status);
void notify_ready(const char *status);
void notify_stopping(const char *status);

#endif
