/* The API and worker processes: one struct child per slot of the process table, started, watched,
 * stopped and started again by the table of child_fsm.def. Loop thread only. */
#ifndef SUPERVISOR_CHILDREN_H
#define SUPERVISOR_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/shm/wake.h"
#include "supervisor/child_fsm.h"
#include "supervisor/generation.h"
#include "supervisor/listen.h"
#include "supervisor/programs.h"

#define CHILDREN_WATCH_MS 500

struct uv_loop_s;
struct children;

struct children_options {
    struct uv_loop_s *loop;
    struct shm *shm;
    const struct wake_set *wakes;
    const struct listeners *listeners;
    const struct generation *generation;
    struct metrics *metrics;
    int config_fd;   /* child_config_create; stays the caller's */
    int lifeline_fd; /* read end */
    struct program_path api, worker;
    int64_t drain_timeout_ms, watchdog_ms;
    /* A process was reaped (its slot's lock is free): its sessions can be taken back. */
    void (*died)(uint32_t slot, enum shm_role role, uint64_t incarnation, void *arg);
    /* Some child's state changed: ask children_are_ready, children_are_down. */
    void (*changed)(void *arg);
    void *arg;
};

/* 0 or -ENOMEM. */
int children_create(struct children **ret, const struct children_options *options);
/* Starts one API process and that many workers. */
void children_start(struct children *children, uint32_t workers);
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
/* A hint to every worker that serves. */
void children_hint_workers(struct children *children, uint64_t hint);
/* Closes handles (all must be down); run the loop, then destroy. */
void children_close(struct children *children);
void children_destroy(struct children **children);

#endif
