/* The life of a child process as a table over (state, event): child_fsm.def. Pure: who calls
 * carries the action out. */
#ifndef SUPERVISOR_CHILD_FSM_H
#define SUPERVISOR_CHILD_FSM_H

enum child_state {
    CHILD_DOWN,
    CHILD_STARTING,
    CHILD_READY,
    CHILD_DRAINING,
    CHILD_KILLING,
    CHILD_BACKOFF,
    CHILD_FAILED,
    CHILD_STATE_COUNT,
};

enum child_event {
    CHILD_EVENT_SPAWNED,
    CHILD_EVENT_READY,
    CHILD_EVENT_EXITED,
    CHILD_EVENT_FAILED,
    CHILD_EVENT_TIMEOUT,
    CHILD_EVENT_STOP,
    CHILD_EVENT_KILL,
    CHILD_EVENT_COUNT,
};

enum child_action {
    CHILD_ACTION_UNDEFINED, /* no row: never returned for a state and event in range */
    CHILD_ACTION_NONE,
    CHILD_ACTION_IGNORE, /* nothing, not even a log line above debug */
    CHILD_ACTION_SPAWN,
    CHILD_ACTION_TERM,
    CHILD_ACTION_KILL,
    CHILD_ACTION_DELAY, /* arm the timer for the next start */
};

struct child_step {
    enum child_state next;
    enum child_action action;
};

struct child_step child_fsm_step(enum child_state state, enum child_event event);
const char *child_state_name(enum child_state state);
const char *child_event_name(enum child_event event);

#endif
