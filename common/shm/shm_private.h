/* What the files of common/shm share: the private side of a mapped segment. Everything here was
 * checked once and lives in private memory; the segment itself is reached through the accessors
 * below, with indexes that the caller bounds. */
#ifndef COMMON_SHM_SHM_PRIVATE_H
#define COMMON_SHM_SHM_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/shm/shm.h"
#include "common/shm/shm_layout.h"

#define SHM_NAME_MAX 64
#define SHM_NO_SLOT  UINT32_MAX

struct metrics {
    struct metrics_block *block; /* in the segment, or owned by metrics_create_private */
};

/* Where the parts stand, computed from the two counts: never read from the segment. */
struct shm_parts {
    uint64_t processes, metrics, locks, rings, targets, total_bytes;
};

struct shm {
    unsigned char *base; /* mapped, size_bytes long */
    size_t size_bytes;
    struct shm_parts parts;
    uint64_t generation;
    uint32_t worker_slots;
    uint32_t locks_per_worker;
    uint64_t created_boot_ms; /* the creator only: for shm_mend */
    uint32_t my_slot;         /* SHM_NO_SLOT: mapped read-only */
    int fd;                   /* the creator's; -1 otherwise */
    int guard_fd;             /* who attached: its own, for making the segment whole again; -1 */
    char name[SHM_NAME_MAX];  /* the creator's, to be unlinked; empty otherwise */
    struct metrics metrics;   /* own slot */
    uint32_t *free_locks;     /* workers: a stack of free indexes of the own lock table */
    uint32_t free_lock_count;
    unsigned char *lock_in_use; /* workers: by index */
};

/* 0, or -EINVAL for counts out of range. */
int shm_compute_parts(const struct shm_sizes *sizes, struct shm_parts *ret);
/* Maps an open segment after all checks. my_slot SHM_NO_SLOT: read-only. *ret_created_boot_ms may
 * be NULL. */
int shm_map(struct shm **ret, int fd, uint32_t my_slot, uint64_t *ret_created_boot_ms);
/* The segment's name; `name` holds SHM_NAME_MAX bytes. */
void shm_format_name(const char *state_dir, uint64_t generation, char *name);
/* Empties the lock table of a worker slot; ignores any other. */
void lock_table_reset(struct shm *shm, uint32_t slot);

static inline struct shm_process_cells *shm_process_at(const struct shm *shm, uint32_t slot)
{
    return (struct shm_process_cells *)(void *)(shm->base + shm->parts.processes) + slot;
}

static inline struct metrics_block *shm_metrics_at(const struct shm *shm, uint32_t slot)
{
    return (struct metrics_block *)(void *)(shm->base + shm->parts.metrics) + slot;
}

static inline struct shm_lock_cells *shm_lock_at(const struct shm *shm, uint32_t worker,
                                                 uint32_t index)
{
    return (struct shm_lock_cells *)(void *)(shm->base + shm->parts.locks) +
           ((size_t)worker * shm->locks_per_worker + index);
}

static inline struct shm_ring *shm_ring_at(const struct shm *shm, uint32_t worker, uint32_t ring)
{
    return (struct shm_ring *)(void *)(shm->base + shm->parts.rings) +
           ((size_t)worker * SHM_RINGS_PER_WORKER + ring);
}

static inline struct shm_target_cell *shm_target_at(const struct shm *shm, uint32_t index)
{
    return (struct shm_target_cell *)(void *)(shm->base + shm->parts.targets) + index;
}

static inline bool shm_is_worker_slot(const struct shm *shm, uint32_t slot)
{
    return slot >= SHM_SLOT_WORKER_FIRST && slot - SHM_SLOT_WORKER_FIRST < shm->worker_slots;
}

static inline bool shm_is_api_slot(uint32_t slot)
{
    return slot >= SHM_SLOT_API_FIRST && slot - SHM_SLOT_API_FIRST < SHM_API_SLOTS;
}

#endif
