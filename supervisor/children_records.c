/* Children over an upgrade: the program changes, the process that is their parent does not. */
#include <errno.h>

#include "common/base/clock.h"
#include "supervisor/children_private.h"

#define RESPAWN_MS 1000 /* one that was to be started again */

void children_each_record(const struct children *children, child_record_cb *cb, void *arg)
{
    for (uint32_t i = 0; i < children->count; i++) {
        const struct child *child = &children->items[i];

        if (child->state == CHILD_DOWN) {
            continue;
        }
        cb(
            &(struct child_record){
                .slot = child->slot,
                .role = child->role,
                .state = child->state,
                .is_wanted = child->is_wanted,
                .pid = child->pid,
                .generation = child->generation,
                .incarnation = child->incarnation,
                .started_ms = child->started_ms,
                .left_ms = uv_is_active((const uv_handle_t *)&child->timer)
                               ? (int64_t)uv_timer_get_due_in(&child->timer)
                               : -1,
            },
            arg);
    }
}

static struct child *place_for(struct children *children, const struct child_record *record,
                               bool is_foreign)
{
    if (!is_foreign) {
        const uint32_t index = record->slot - SHM_SLOT_API_FIRST;

        return record->slot >= SHM_SLOT_API_FIRST && index < children->slots &&
                       children->items[index].role == record->role
                   ? &children->items[index]
                   : NULL;
    }
    for (uint32_t i = children->slots; i < children->count; i++) {
        if (children->items[i].state == CHILD_DOWN) {
            return &children->items[i];
        }
    }
    return NULL;
}

/* One that was starting has said READY to a pipe that is gone: its heartbeat is watched from now
 * on. One without a process is started again. */
static enum child_state resumed_state(const struct child_record *record)
{
    if (record->pid <= 0) {
        return CHILD_BACKOFF;
    }
    return record->state == CHILD_STARTING ? CHILD_READY : record->state;
}

int children_restore(struct children *children, const struct child_record *record, bool is_foreign)
{
    struct child *child = place_for(children, record, is_foreign);

    if (!child) {
        return -ENOSPC;
    }
    if (record->pid <= 0 && (is_foreign || !record->is_wanted)) {
        return 0; /* nobody, and nobody to come: a foreign one can't be started here */
    }
    child->slot = record->slot;
    child->role = record->role;
    child->state = resumed_state(record);
    child->has_served = record->state != CHILD_STARTING;
    child->is_wanted = record->is_wanted;
    child->pid = record->pid > 0 ? record->pid : 0;
    child->generation = record->generation;
    child->incarnation = record->incarnation;
    child->started_ms = record->started_ms;
    child_resume(child, child->state == CHILD_BACKOFF ? RESPAWN_MS
                        : child->state == CHILD_READY ? -1
                                                      : record->left_ms);
    return 0;
}
