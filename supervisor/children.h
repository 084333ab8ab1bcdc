/* The API and worker processes: one struct child per slot of the process table, started, watched,
 * replaced, stopped and started again by the table of child_fsm.def. Loop thread only. */
#ifndef SUPERVISOR_CHILDREN_H
#define SUPERVISOR_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/shm/wake.h"
#include "supervisor/child_config.h"
#include "supervisor/child_fsm.h"
#include "supervisor/generation.h"
#include "supervisor/listen.h"
#include "supervisor/programs.h"

#define CHILDREN_WATCH_MS 500

struct uv_loop_s;
struct children;

struct kind_labels;
struct privileges;

/* A child as an upgrade hands it on. */
struct child_record {
    uint32_t slot;
    enum shm_role role;
    enum child_state state;
    bool is_wanted;
    pid_t pid;
    uint64_t generation, incarnation;
    int64_t started_ms; /* CLOCK_MONOTONIC */
    int64_t left_ms;    /* of the state's time limit; -1: none */
};

struct children_options {
    struct uv_loop_s *loop;
    struct shm *shm;
    const struct wake_set *wakes;
    const struct listeners *listeners;
    const struct generation *generation;
    struct metrics *metrics;
    const struct privileges *privileges; /* theirs */
    const struct kind_labels *kinds;     /* as they are at each start */
    int lifeline_fd;                     /* read end */
    struct program_path api, worker;
    int64_t drain_timeout_ms, watchdog_ms;
    /* A process was reaped (its slot's lock is free): its sessions can be taken back. */
    void (*died)(const struct child_record *record, void *arg);
    /* Some child's state changed: ask children_are_ready, children_are_down. */
    void (*changed)(void *arg);
    /* The end of children_replace: true, all are new; false, all are as before. */
    void (*replaced)(bool is_done, void *arg);
    void *arg;
};

/* 0 or -ENOMEM. `config` is taken over in either case. `foreign`: how many
 * children of another segment are to be restored at most. */
int children_create(struct children **ret, const struct children_options *options,
                    struct child_config config, uint32_t foreign);
/* Starts one API process and that many workers. */
void children_start(struct children *children, uint32_t workers);
/* Puts one API process and `workers` others with a new configuration (taken over) in the place of
 * all that serve: see rollover.h. `replaced` tells the end, perhaps before this call returns. */
void children_replace(struct children *children, struct child_config config, uint32_t workers);
bool children_are_being_replaced(const struct children *children);
/* Time limits of a new configuration. */
void children_set_limits(struct children *children, int64_t drain_timeout_ms, int64_t watchdog_ms);
/* How many workers are wanted; one more (-ENOSPC: no place is free), one fewer (-ERANGE: it is the
 * last). Not while they are being replaced. */
uint32_t children_workers(const struct children *children);
int children_add_worker(struct children *children);
int children_remove_worker(struct children *children);
/* All that are wanted serve; all are gone. */
bool children_are_ready(const struct children *children);
bool children_are_down(const struct children *children);
/* SIGTERM to all; those that are not gone after drain_timeout are killed. */
void children_stop(struct children *children);
/* SIGKILL to all, none comes again. */
void children_kill(struct children *children);
/* True: the process was one of ours. */
bool children_reaped(struct children *children, pid_t pid, int wait_status);
/* Every CHILDREN_WATCH_MS: the watchdog. */
void children_watch(struct children *children);
/* SIGUSR1 to all that have said READY once: they open their log files anew. */
void children_reopen_logs(const struct children *children);
/* A hint to every worker that serves. */
void children_hint_workers(struct children *children, uint64_t hint);
/* All that have a process, or shall have one again. */
typedef void child_record_cb(const struct child_record *record, void *arg);
void children_each_record(const struct children *children, child_record_cb *cb, void *arg);
/* After children_create: goes on with a process that a supervisor before us (the same process)
 * started. is_foreign: it is of another segment. -ENOSPC: no such slot. */
int children_restore(struct children *children, const struct child_record *record, bool is_foreign);

/* Closes handles (all must be down); run the loop, then destroy. */
void children_close(struct children *children);
void children_destroy(struct children **children);

#endif
