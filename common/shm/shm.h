/* The shared-memory segment of one generation: process table, hints, lock tables, metrics, and what
 * is known about targets (target_table.h).
 * Everything in it is a hint or a counter, and hostile when read: any byte may be anything, at any
 * time. Layout: shm_layout.h. Contract §9.
 *
 * Threads: one thread per process uses a struct shm (metrics may be counted from any). Reading
 * calls (`const`) never write, work on a read-only mapping, and end after a bounded number of steps
 * whatever stands there. */
#ifndef COMMON_SHM_SHM_H
#define COMMON_SHM_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/shm/metrics_layout.h"

#define SHM_SLOT_SUPERVISOR   0U
#define SHM_SLOT_API_FIRST    1U /* three: old and new during a reload, and one that is slow to go */
#define SHM_SLOT_WORKER_FIRST 4U
#define SHM_SLOT_MAX          64U
#define SHM_WORKER_SLOTS_MAX  (SHM_SLOT_MAX - SHM_SLOT_WORKER_FIRST)
#define SHM_LOCKS_MAX         65536U /* per worker */

struct shm;
struct wake_set;

struct shm_sizes {
    uint32_t worker_slots;     /* 1 to SHM_WORKER_SLOTS_MAX: those draining beside their successors
                                  included */
    uint32_t locks_per_worker; /* 0 to SHM_LOCKS_MAX; 256 bytes each */
};

/* The supervisor: makes `/outboxd.<fnv1a64 of the state directory>.<generation>` (O_EXCL, 0640,
 * space reserved), maps it. The state directory is resolved (realpath) where it can be. 0, or
 * -EINVAL (sizes), -EEXIST, -ENOSPC, -errno. */
int shm_create(struct shm **ret, const char *state_dir, uint64_t generation,
               const struct shm_sizes *sizes);
/* The creator's process after it executed another program: goes on with the segment that it made
 * (fd is its own, taken over on success). 0, or -EPROTO (another layout: a new segment is needed),
 * -errno. */
int shm_adopt(struct shm **ret, int fd, const char *state_dir);
/* The creator writes the header anew from its own memory, before a child is started and now and
 * then: so that garbage there can't keep anybody from attaching. */
void shm_mend(struct shm *shm);
/* The creator's descriptor, for passing on (CLOEXEC; owned by `shm`); -1 for who attached. */
int shm_fd(const struct shm *shm);
/* A child: maps the inherited segment read-write. The caller closes `fd` afterwards. A worker's own
 * lock table and a process's own gauges are emptied: whatever its predecessor in the slot held must
 * have been read before it is spawned. 0, or -EPROTO (not such a segment, or another layout),
 * -EINVAL (my_slot), -errno. */
int shm_attach(struct shm **ret, int fd, uint32_t my_slot);
/* outboxctl: the newest generation of that state directory whose supervisor lives, read-only.
 * -ENOENT if there is none. */
int shm_attach_readonly(struct shm **ret, const char *state_dir);
/* Unmaps; the creator also closes and unlinks. */
void shm_destroy(struct shm **shm);
/* Unlinks the segments of this state directory for which the callback says that their generation is
 * dead. Returns how many went, or -errno. */
typedef bool shm_is_dead_cb(uint64_t generation, void *arg);
int shm_unlink_stale(const char *state_dir, shm_is_dead_cb *is_dead, void *arg);

uint64_t shm_generation(const struct shm *shm);
uint32_t shm_my_slot(const struct shm *shm);    /* UINT32_MAX for a read-only one */
uint32_t shm_slot_count(const struct shm *shm); /* SHM_SLOT_WORKER_FIRST + worker slots */
uint32_t shm_worker_slots(const struct shm *shm);

/* ---- process table (process_table.c) ---- */

enum shm_role {
    SHM_ROLE_NONE,
    SHM_ROLE_SUPERVISOR,
    SHM_ROLE_API,
    SHM_ROLE_WORKER,
};
enum shm_process_state {
    SHM_PROCESS_DOWN, /* nobody there; the other fields are those of the last one */
    SHM_PROCESS_STARTING,
    SHM_PROCESS_READY,
    SHM_PROCESS_DRAINING,
    SHM_PROCESS_WAITING, /* died; the next one starts after a delay */
    SHM_PROCESS_FAILED,  /* refused its configuration: not started again until that changes */
};
/* After so many deaths in a row a process is told of as one that dies again and again. */
#define SHM_LOOP_DEATHS 3U

struct shm_restart {
    uint32_t deaths;                    /* in a row, no healthy spell between them */
    enum label_death_reason last_death; /* means nothing without deaths */
    int64_t next_start_mono_ms;         /* WAITING; may be garbage */
};
struct shm_process {
    enum shm_role role;
    enum shm_process_state state;
    int32_t pid; /* for people to read: never a target for kill() */
    uint64_t generation;
    uint64_t incarnation;
    int64_t started_mono_ms;
    int64_t heartbeat_mono_ms; /* may be garbage: a watchdog compares it with what it saw before,
                                  and asks if it changed */
    struct shm_restart restart;
};
/* It should be there, and what keeps it away does not look like passing: FAILED, or SHM_LOOP_DEATHS
 * and no healthy spell since. */
bool shm_process_is_looping(const struct shm_process *process);

/* The role that belongs to a slot number; NONE out of range. */
enum shm_role shm_slot_role(uint32_t slot);
const char *shm_role_name(enum shm_role role);
const char *shm_process_state_name(enum shm_process_state state);
const char *shm_death_name(enum label_death_reason reason);

/* The five are the supervisor's: one writer. Begin when a child is spawned (state STARTING,
 * heartbeat now); end after it is reaped and its lock table was read: empties its lock table and
 * gauges, its counters stay. Slots out of range: ignored. */
void shm_process_begin(struct shm *shm, uint32_t slot, enum shm_role role, int32_t pid,
                       uint64_t incarnation);
void shm_process_set_state(struct shm *shm, uint32_t slot, enum shm_process_state state);
void shm_process_end(struct shm *shm, uint32_t slot);
void shm_process_set_restart(struct shm *shm, uint32_t slot, const struct shm_restart *restart);
/* Nobody is to be in that slot any more: as if it was never used, but its counters stay. */
void shm_process_forget(struct shm *shm, uint32_t slot);
/* Own slot: this process's loop is alive (CLOCK_MONOTONIC). */
void shm_heartbeat(struct shm *shm);
/* Whether the slot's process says that it serves: one load. */
bool shm_process_is_ready(const struct shm *shm, uint32_t slot);
/* 0, or -ENOENT (never used, or out of range), -EAGAIN (being written, or garbage), then *ret is
 * untouched. */
int shm_process_read(const struct shm *shm, uint32_t slot, struct shm_process *ret);

/* ---- hints (ring.c) ----
 * Rings: each API slot -> each worker, supervisor -> each worker, each worker -> each API slot. 256
 * hints each. The value: low 8 bits the partition, the rest free. Whoever takes one checks it: it
 * may be garbage. */

/* From my slot. False: full (counted in ring_drops_total) or no ring for that pair. Harmless either
 * way. */
bool shm_hint_push(struct shm *shm, uint32_t to_slot, uint64_t hint);
/* The same, and wakes the consumer unless a signal to it is under way already. */
bool shm_hint_send(struct shm *shm, const struct wake_set *wakes, uint32_t to_slot, uint64_t hint);
/* Hands out what is in all rings into my slot, at most 256 each, and asks for a signal for whatever
 * comes later. Call it after wake_clear(), and once a second in any case. Returns how many. */
typedef void shm_hint_cb(uint32_t from_slot, uint64_t hint, void *arg);
size_t shm_hint_drain(struct shm *shm, shm_hint_cb *cb, void *arg);

/* ---- lock tables (lock_table.c): what each worker holds, for `outboxctl top` and for recovery as
 * a first guess ---- */

enum shm_lock_activity {
    SHM_LOCK_SENDING,
    SHM_LOCK_VERIFYING,
    SHM_LOCK_ACTIVITY_COUNT,
};
const char *shm_lock_activity_name(enum shm_lock_activity activity);

struct shm_lock {
    char workspace[64 + 1]; /* as the client writes it (raw) */
    char session[128 + 1];
    enum shm_lock_activity activity;
    uint32_t kind;  /* its `place`; past the end: LABEL_KIND_OTHER */
    uint64_t claim; /* claim number in the lock token */
    int64_t started_mono_ms;
};

/* Own slot (workers only). Returns an index for update and clear, -ENOSPC (full, or names too long
 * or not valid: then simply not shown), or -EINVAL (not a worker). The other two take any number
 * and ignore what is not an index in use. */
int lock_table_put(struct shm *shm, const struct shm_lock *lock);
void lock_table_update(struct shm *shm, int index, const struct shm_lock *lock);
void lock_table_clear(struct shm *shm, int index);
/* Copies of what the worker in `slot` shows; names are valid workspace and session names, numbers
 * in range. Entries being written or garbage are left out. Returns how many the callback got; 0 for
 * a slot that has no table. */
typedef void shm_lock_cb(const struct shm_lock *lock, void *arg);
size_t lock_table_each(const struct shm *shm, uint32_t slot, shm_lock_cb *cb, void *arg);

#endif
