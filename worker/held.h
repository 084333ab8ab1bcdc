/* The sessions that this worker holds, each with its delivery, and how many of them each workspace
 * has. Loop thread only. */
#ifndef WORKER_HELD_H
#define WORKER_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/span.h"

struct held;
struct delivery;

/* How much of this worker a workspace uses. */
struct held_workspace {
    struct span name;
    uint32_t partition;
    uint32_t count;
};

int held_create(struct held **ret);
/* Must be empty. */
void held_destroy(struct held **held);

/* The delivery that holds a session, or NULL. */
struct delivery *held_find(const struct held *held, struct span workspace, struct span session);
/* Takes a session up; the names must live until held_remove. 0, -EEXIST or -ENOMEM. */
int held_insert(struct held *held, struct span workspace, struct span session,
                struct delivery *delivery);
void held_remove(struct held *held, struct span workspace, struct span session);
uint32_t held_count(const struct held *held);
/* A session that is held waits for its kind's turn, or does so no longer: meanwhile it uses nothing
 * of this worker. */
void held_set_waiting(struct held *held, struct span workspace, bool is_waiting);
/* Those that do not wait: of all, of a workspace. */
uint32_t held_used(const struct held *held);
uint32_t held_used_by(const struct held *held, struct span workspace);
/* Copies at most `max` workspaces of a partition, in no order, with what they use; returns how
 * many. Names live until the next change. */
uint32_t held_workspaces_of(const struct held *held, uint32_t partition, struct held_workspace *ret,
                            uint32_t max);

#endif
