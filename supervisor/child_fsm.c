/* The table of child_fsm.def and its names. Pure. */
#include "supervisor/child_fsm.h"

static const struct child_step steps[CHILD_STATE_COUNT][CHILD_EVENT_COUNT] = {
#define CHILD_STEP(from, event, to, do)                                                            \
    [CHILD_##from][CHILD_EVENT_##event] = {.next = CHILD_##to, .action = CHILD_ACTION_##do},
#include "supervisor/child_fsm.def"
};

struct child_step child_fsm_step(enum child_state state, enum child_event event)
{
    return steps[state][event];
}

const char *child_state_name(enum child_state state)
{
    switch (state) {
    case CHILD_DOWN:
        return "down";
    case CHILD_STARTING:
        return "starting";
    case CHILD_READY:
        return "ready";
    case CHILD_DRAINING:
        return "draining";
    case CHILD_KILLING:
        return "killing";
    case CHILD_BACKOFF:
        return "backoff";
    case CHILD_FAILED:
        return "failed";
    case CHILD_STATE_COUNT:
        break;
    }
    return "?";
}

const char *child_event_name(enum child_event event)
{
    switch (event) {
    case CHILD_EVENT_SPAWNED:
        return "spawned";
    case CHILD_EVENT_READY:
        return "ready";
    case CHILD_EVENT_EXITED:
        return "exited";
    case CHILD_EVENT_FAILED:
        return "failed";
    case CHILD_EVENT_TIMEOUT:
        return "timeout";
    case CHILD_EVENT_STOP:
        return "stop";
    case CHILD_EVENT_KILL:
        return "kill";
    case CHILD_EVENT_COUNT:
        break;
    }
    return "?";
}
