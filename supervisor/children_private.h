/* What children.c (states) and child_process.c (one process of a child) share. */
#ifndef SUPERVISOR_CHILDREN_PRIVATE_H
#define SUPERVISOR_CHILDREN_PRIVATE_H

#include <uv.h>

#include "supervisor/children.h"
#include "supervisor/restart_policy.h"
#include "supervisor/watchdog.h"

struct ready_pipe;

/* One slot of the process table and who is in it. */
struct child {
    struct children *owner;
    uint32_t slot;
    enum shm_role role;
    enum child_state state; /* changed by child_event() only */
    bool is_wanted;         /* comes again after a death */
    pid_t pid;              /* 0: no process */
    uint64_t incarnation;   /* drawn for every process: stands in its lock tokens */
    int64_t started_ms;
    uv_timer_t timer;         /* the state's time limit */
    struct ready_pipe *ready; /* until it said READY or ended */
    struct restart_history history;
    struct watchdog watchdog;
    bool is_hanging; /* being killed by the watchdog */
    bool has_died;
    enum label_death_reason last_death;
};

struct children {
    struct children_options options;
    int64_t watched_ms;
    uint32_t count;
    struct child items[];
};

#endif
