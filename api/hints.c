/* Which worker is told of which session. */
#include "api/hints.h"

#include "common/core/keys.h"

void hints_init(struct hints *hints, struct shm *shm)
{
    *hints = (struct hints){.shm = shm};
    wake_set_inherit(&hints->wakes, shm_slot_count(shm));
    hints_refresh(hints);
}

void hints_done(struct hints *hints)
{
    wake_set_done(&hints->wakes);
    hints->worker_count = 0;
}

static void drop(uint32_t from_slot, uint64_t hint, void *arg)
{
    (void)from_slot;
    (void)hint;
    (void)arg;
}

void hints_refresh(struct hints *hints)
{
    uint32_t count = 0;

    for (uint32_t slot = SHM_SLOT_WORKER_FIRST; slot < shm_slot_count(hints->shm); slot++) {
        struct shm_process process;

        if (shm_process_read(hints->shm, slot, &process) == 0 &&
            process.state == SHM_PROCESS_READY && count < SHM_WORKER_SLOTS_MAX) {
            hints->workers[count++] = slot;
        }
    }
    hints->worker_count = count;
    wake_clear(hints->wakes.fds[shm_my_slot(hints->shm)]);
    (void)shm_hint_drain(hints->shm, drop, NULL);
}

void hints_send(struct hints *hints, struct span workspace, struct span session)
{
    uint64_t hash;

    if (hints->worker_count == 0) {
        hints_refresh(hints); /* at a start: a worker may have become ready since the last look */
    }
    if (hints->worker_count == 0) {
        return;
    }
    /* Two hashes combined, so that no copy of the two names is needed. */
    hash = fnv1a64(workspace.ptr, workspace.len) * 0x9e3779b97f4a7c15u ^
           fnv1a64(session.ptr, session.len);
    hash ^= hash >> 32;
    if (!shm_process_is_ready(hints->shm, hints->workers[hash % hints->worker_count])) {
        hints_refresh(hints); /* it drains, or died */
        if (hints->worker_count == 0) {
            return;
        }
    }
    (void)shm_hint_send(hints->shm, &hints->wakes, hints->workers[hash % hints->worker_count],
                        partition_of(workspace.ptr, workspace.len) | hash << 8);
}
