/* Replacing the API and all workers: what to do next. Successors are started one by one beside
 * those that serve; only when every one of them is ready do the old ones go. So a configuration or
 * a program that does not work leaves everything as it was. Pure. Contract §10 (HUP, USR2). */
#ifndef SUPERVISOR_ROLLOVER_H
#define SUPERVISOR_ROLLOVER_H

#include <stdbool.h>
#include <stdint.h>

/* The successors of one role. */
struct rollover_role {
    uint32_t wanted;
    uint32_t started; /* starting or ready */
    uint32_t ready;
    bool has_free_slot;
};

struct rollover_view {
    struct rollover_role workers, apis;
    bool has_failed; /* a successor ended, or was not ready in time */
};

enum rollover_step {
    ROLLOVER_WAIT,          /* a successor is not ready yet */
    ROLLOVER_WAIT_FOR_SLOT, /* processes that drain hold every place */
    ROLLOVER_START_WORKER,
    ROLLOVER_START_API,
    ROLLOVER_COMMIT, /* all are ready: the old ones may go */
    ROLLOVER_ABORT,  /* the successors go */
};

/* Workers come first: no kind is accepted that no worker knows. */
enum rollover_step rollover_next(const struct rollover_view *view);

#endif
