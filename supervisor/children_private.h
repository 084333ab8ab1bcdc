/* What children.c (states and deaths), children_replace.c (reload, number of workers),
 * children_records.c (over an upgrade) and child_process.c (one process of a child) share. */
#ifndef SUPERVISOR_CHILDREN_PRIVATE_H
#define SUPERVISOR_CHILDREN_PRIVATE_H

#include <uv.h>

#include "supervisor/children.h"
#include "supervisor/restart_policy.h"
#include "supervisor/watchdog.h"

struct ready_pipe;

/* One slot of the process table and who is in it; or a process of an earlier program's segment. */
struct child {
    struct children *owner;
    uint32_t slot;
    enum shm_role role;
    enum child_state state; /* changed by child_event() only */
    bool is_wanted;         /* comes again after a death */
    bool is_successor;      /* of a replacement under way: runs with its configuration */
    bool has_successor;     /* goes in its own time: somebody else serves */
    bool is_foreign;        /* not of our segment: no place in the process table, no heartbeat */
    pid_t pid;              /* 0: no process */
    uint64_t generation, incarnation; /* stand in its lock tokens; the latter is drawn for every
                                         process */
    int64_t started_ms;
    int64_t ready_ms;         /* 0: its process has not said READY */
    int64_t next_start_ms;    /* BACKOFF; else 0 */
    uv_timer_t timer;         /* the state's time limit */
    struct ready_pipe *ready; /* until it said READY or ended */
    struct restart_history history;
    struct watchdog watchdog;
    bool has_served; /* said READY: its handlers of signals are there */
    bool is_hanging; /* being killed by the watchdog */
    bool has_died;
    enum label_death_reason last_death;
};

struct children {
    struct children_options options;
    struct child_config config;      /* owned */
    bool is_replacing;               /* the three belong to the replacement under way */
    bool is_stepping;                /* no step within a step */
    bool has_told_slots;             /* that it waits for a place */
    struct child_config next_config; /* owned */
    uint32_t next_workers;
    int64_t watched_ms;
    uint32_t slots; /* items of our segment, in front; the rest are foreign ones */
    uint32_t count;
    struct child items[];
};

/* The one function that changes a child's state. */
void child_event(struct child *child, enum child_event event);
/* Starts a process in a slot that is DOWN; its end or its READY are events. */
void child_spawn(struct child *child);
/* A restored child goes on in its state. */
void child_resume(struct child *child, int64_t limit_ms);
/* Whether a new process may take the slot. */
bool child_is_free(const struct child *child);
/* An ordinary child in a free slot, in the place of one that can't be started again. 0 or -ENOSPC.
 */
int children_stand_in(struct children *children, enum shm_role role);
/* After each event. */
void children_replace_progress(struct children *children);

#endif
