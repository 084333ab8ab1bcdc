/* Who runs in which slot. The supervisor writes all but the heartbeat, so every cell has one
 * writer; it never reads back what it wrote to decide anything (its own records do that). */
#include <errno.h>

#include "common/base/clock.h"
#include "common/shm/metrics.h"
#include "common/shm/seqlock.h"
#include "common/shm/shm_private.h"

enum process_word {
    WORD_ROLE,
    WORD_PID,
    WORD_GENERATION,
    WORD_INCARNATION,
    WORD_STARTED,
    WORD_COUNT,
};
static_assert(WORD_COUNT == SHM_PROCESS_WORDS, "the words of the layout");

enum shm_role shm_slot_role(uint32_t slot)
{
    if (slot == SHM_SLOT_SUPERVISOR) {
        return SHM_ROLE_SUPERVISOR;
    }
    if (shm_is_api_slot(slot)) {
        return SHM_ROLE_API;
    }
    return slot < SHM_SLOT_MAX ? SHM_ROLE_WORKER : SHM_ROLE_NONE;
}

const char *shm_role_name(enum shm_role role)
{
    switch (role) {
    case SHM_ROLE_NONE:
        return "none";
    case SHM_ROLE_SUPERVISOR:
        return "supervisor";
    case SHM_ROLE_API:
        return "api";
    case SHM_ROLE_WORKER:
        return "worker";
    }
    return "invalid";
}

const char *shm_process_state_name(enum shm_process_state state)
{
    switch (state) {
    case SHM_PROCESS_DOWN:
        return "down";
    case SHM_PROCESS_STARTING:
        return "starting";
    case SHM_PROCESS_READY:
        return "ready";
    case SHM_PROCESS_DRAINING:
        return "draining";
    case SHM_PROCESS_WAITING:
        return "waiting";
    case SHM_PROCESS_FAILED:
        return "failed";
    }
    return "invalid";
}

const char *shm_death_name(enum label_death_reason reason)
{
    static const char *const names[] = {
#define NAME_ROW(set, id, text) [LABEL_##set##_##id] = text,
        LABEL_ROWS_DEATH_REASON(NAME_ROW)
#undef NAME_ROW
    };

    return (unsigned)reason < LABELS_DEATH_REASON ? names[reason] : "invalid";
}

bool shm_process_is_looping(const struct shm_process *process)
{
    return process->state == SHM_PROCESS_FAILED ||
           (process->state != SHM_PROCESS_DOWN && process->restart.deaths >= SHM_LOOP_DEATHS);
}

static bool can_write(const struct shm *shm, uint32_t slot)
{
    return shm->my_slot != SHM_NO_SLOT && slot < shm_slot_count(shm);
}

void shm_process_begin(struct shm *shm, uint32_t slot, enum shm_role role, int32_t pid,
                       uint64_t incarnation)
{
    if (!can_write(shm, slot)) {
        return;
    }
    struct shm_process_cells *cells = shm_process_at(shm, slot);
    const int64_t now_ms = clock_mono_ms();
    const uint64_t words[WORD_COUNT] = {
        [WORD_ROLE] = (uint64_t)role,        [WORD_PID] = (uint64_t)(uint32_t)pid,
        [WORD_GENERATION] = shm->generation, [WORD_INCARNATION] = incarnation,
        [WORD_STARTED] = (uint64_t)now_ms,
    };
    seqlock_write(&cells->seq, cells->words, words, WORD_COUNT);
    /* The child may have beaten already: then its time and ours are both now. */
    atomic_store_explicit(&cells->heartbeat_mono_ms, (uint64_t)now_ms, memory_order_relaxed);
    atomic_store_explicit(&cells->state, SHM_PROCESS_STARTING, memory_order_release);
}

void shm_process_set_state(struct shm *shm, uint32_t slot, enum shm_process_state state)
{
    if (can_write(shm, slot)) {
        atomic_store_explicit(&shm_process_at(shm, slot)->state, (uint64_t)state,
                              memory_order_release);
    }
}

void shm_process_set_restart(struct shm *shm, uint32_t slot, const struct shm_restart *restart)
{
    if (!can_write(shm, slot)) {
        return;
    }
    struct shm_process_cells *cells = shm_process_at(shm, slot);
    atomic_store_explicit(&cells->deaths, restart->deaths, memory_order_relaxed);
    atomic_store_explicit(&cells->last_death, (uint64_t)restart->last_death, memory_order_relaxed);
    atomic_store_explicit(&cells->next_start_mono_ms, (uint64_t)restart->next_start_mono_ms,
                          memory_order_relaxed);
}

void shm_process_end(struct shm *shm, uint32_t slot)
{
    if (!can_write(shm, slot)) {
        return;
    }
    struct metrics metrics = {.block = shm_metrics_at(shm, slot)};

    shm_process_set_state(shm, slot, SHM_PROCESS_DOWN);
    lock_table_reset(shm, slot);
    metrics_reset_gauges(&metrics);
}

void shm_process_forget(struct shm *shm, uint32_t slot)
{
    static const uint64_t nobody[WORD_COUNT] = {[WORD_ROLE] = SHM_ROLE_NONE};

    if (can_write(shm, slot)) {
        struct shm_process_cells *cells = shm_process_at(shm, slot);

        shm_process_set_state(shm, slot, SHM_PROCESS_DOWN);
        seqlock_write(&cells->seq, cells->words, nobody, WORD_COUNT);
    }
}

void shm_heartbeat(struct shm *shm)
{
    if (shm->my_slot != SHM_NO_SLOT) {
        atomic_store_explicit(&shm_process_at(shm, shm->my_slot)->heartbeat_mono_ms,
                              (uint64_t)clock_mono_ms(), memory_order_relaxed);
    }
}

bool shm_process_is_ready(const struct shm *shm, uint32_t slot)
{
    return slot < shm_slot_count(shm) &&
           atomic_load_explicit(&shm_process_at(shm, slot)->state, memory_order_relaxed) ==
               SHM_PROCESS_READY;
}

static struct shm_restart read_restart(struct shm_process_cells *cells)
{
    const uint64_t deaths = atomic_load_explicit(&cells->deaths, memory_order_relaxed);
    const uint64_t reason = atomic_load_explicit(&cells->last_death, memory_order_relaxed);
    const uint64_t next = atomic_load_explicit(&cells->next_start_mono_ms, memory_order_relaxed);

    return (struct shm_restart){
        .deaths = deaths < UINT32_MAX ? (uint32_t)deaths : UINT32_MAX,
        .last_death = reason < LABELS_DEATH_REASON ? (enum label_death_reason)reason
                                                   : LABEL_DEATH_REASON_EXIT,
        .next_start_mono_ms = (int64_t)(next & INT64_MAX),
    };
}

int shm_process_read(const struct shm *shm, uint32_t slot, struct shm_process *ret)
{
    if (slot >= shm_slot_count(shm)) {
        return -ENOENT;
    }
    struct shm_process_cells *cells = shm_process_at(shm, slot);
    uint64_t words[WORD_COUNT];
    if (!seqlock_read(&cells->seq, cells->words, words, WORD_COUNT)) {
        return -EAGAIN;
    }
    const uint64_t state = atomic_load_explicit(&cells->state, memory_order_acquire);
    if (words[WORD_ROLE] == SHM_ROLE_NONE) {
        return -ENOENT;
    }
    if (words[WORD_ROLE] > SHM_ROLE_WORKER || state > SHM_PROCESS_FAILED) {
        return -EAGAIN;
    }
    *ret = (struct shm_process){
        .role = (enum shm_role)words[WORD_ROLE],
        .state = (enum shm_process_state)state,
        .pid = (int32_t)(words[WORD_PID] & INT32_MAX),
        .generation = words[WORD_GENERATION],
        .incarnation = words[WORD_INCARNATION],
        .started_mono_ms = (int64_t)(words[WORD_STARTED] & INT64_MAX),
        .heartbeat_mono_ms =
            (int64_t)(atomic_load_explicit(&cells->heartbeat_mono_ms, memory_order_relaxed) &
                      INT64_MAX),
        .restart = read_restart(cells),
    };
    return 0;
}
