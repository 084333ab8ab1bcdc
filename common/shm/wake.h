/* Waking another process: one eventfd per slot, made by the supervisor and inherited by every child
 * at a fixed number (common/base/inherit.h). Whoever sleeps watches its own with uv_poll_t;
 * uv_async_t does not reach across processes. */
#ifndef COMMON_SHM_WAKE_H
#define COMMON_SHM_WAKE_H

#include "common/shm/shm.h"

struct wake_set {
    int fds[SHM_SLOT_MAX]; /* -1: nobody to wake */
};

/* A new eventfd, non-blocking and CLOEXEC; -errno. */
int wake_create(void);
/* Makes the reader of `fd` wake up; nothing to report: a full counter means that it will. -1 is
 * taken. */
void wake_signal(int fd);
/* Takes all signals so far. Call before shm_hint_drain, never after. */
void wake_clear(int fd);

/* All empty. */
void wake_set_init(struct wake_set *set);
/* The supervisor: an eventfd for each of the first `slot_count` slots. 0 or -errno (then nothing is
 * open). */
int wake_set_create(struct wake_set *set, uint32_t slot_count);
/* A child: those inherited descriptors that exist. Never fails: what is missing is not woken. */
void wake_set_inherit(struct wake_set *set, uint32_t slot_count);
/* Closes all. */
void wake_set_done(struct wake_set *set);

#endif
