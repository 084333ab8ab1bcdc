/* What lives in the shared-memory segment, and nothing else: fixed-width cells and where they
 * stand. Both ends of the segment are compiled from this file; the fingerprint in the header tells
 * when they were not. Contract §9.
 *
 *   header     struct shm_header         written once by the creator, `magic` last
 *   processes  struct shm_process_cells  x slots: who runs in which, heartbeat, wake flag
 *   metrics    struct metrics_block      x slots: written by that slot's process alone
 *   locks      struct shm_lock_cells     x workers x locks_per_worker
 *   rings      struct shm_ring           x workers x SHM_RINGS_PER_WORKER
 *   targets    struct shm_target_cell    x SHM_TARGETS: written by any worker
 *
 * Rules: no pointers, no enum, no bool. One writer per cell (exceptions: the wake flag, see ring.c,
 * and what is known about targets, see target_table.c). Every part starts on a cache line of its
 * own. The counts below are in the header for information only: attach copies two of them after
 * checks and computes all offsets anew, so that no later byte can move a part. */
#ifndef COMMON_SHM_SHM_LAYOUT_H
#define COMMON_SHM_SHM_LAYOUT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/shm/metrics_layout.h"

#define SHM_MAGIC          0x31306d6873626f6fULL /* "oobshm01" read as a little-endian word */
#define SHM_LAYOUT_VERSION 2U
#define SHM_CACHE_LINE     64

#define SHM_RING_SLOTS       256U /* a power of two */
/* Into each worker: 3 API slots and the supervisor; out of it: 3 API slots. */
#define SHM_API_SLOTS        3U
#define SHM_RINGS_PER_WORKER (2U * SHM_API_SLOTS + 1U)

#define SHM_TARGETS 4096U

#define SHM_LOCK_WORKSPACE_WORDS 8  /* 64 bytes */
#define SHM_LOCK_SESSION_WORDS   16 /* 128 bytes */
#define SHM_LOCK_META_WORDS      3
#define SHM_LOCK_WORDS           (SHM_LOCK_META_WORDS + SHM_LOCK_WORKSPACE_WORDS + SHM_LOCK_SESSION_WORDS)

struct shm_header {
    alignas(SHM_CACHE_LINE) _Atomic uint64_t magic; /* stored last, with release */
    uint64_t fingerprint;                           /* of the tables both ends were compiled from */
    uint64_t size_bytes;
    uint64_t generation;
    uint64_t created_boot_ms; /* CLOCK_BOOTTIME: which of two segments is the newer one */
    uint32_t worker_slots;
    uint32_t locks_per_worker;
};

#define SHM_PROCESS_WORDS 5
struct shm_process_cells {
    /* Written by the supervisor. `words` under `seq`: role, pid, generation, incarnation, started
     * (mono ms). */
    alignas(SHM_CACHE_LINE) _Atomic uint64_t seq;
    _Atomic uint64_t words[SHM_PROCESS_WORDS];
    _Atomic uint64_t state;
    /* Each for itself: deaths in a row, why the last one (LABEL_DEATH_REASON_…), when the next
     * start is due (mono ms). */
    _Atomic uint64_t deaths, last_death, next_start_mono_ms;
    /* Written by the process itself. */
    alignas(SHM_CACHE_LINE) _Atomic uint64_t heartbeat_mono_ms;
    /* 1: the process wants a signal for the next hint. Set by it, cleared by whoever signals. */
    alignas(SHM_CACHE_LINE) _Atomic uint64_t wants_wake;
};

struct shm_lock_cells {
    /* Odd while the words are written. words: meta (kind, what, lengths), claim, started (mono ms),
     * names. */
    alignas(SHM_CACHE_LINE) _Atomic uint64_t seq;
    _Atomic uint64_t words[SHM_LOCK_WORDS];
};

struct shm_ring {
    alignas(
        SHM_CACHE_LINE) _Atomic uint64_t head; /* written by the producer: hints pushed so far */
    alignas(SHM_CACHE_LINE) _Atomic uint64_t tail; /* written by the consumer: hints taken so far */
    alignas(SHM_CACHE_LINE) _Atomic uint64_t hints[SHM_RING_SLOTS];
};

struct shm_target_cell {
    alignas(SHM_CACHE_LINE) _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t circuit;                     /* packed: see target_table.c */
    _Atomic uint64_t full_ns;                     /* CLOCK_MONOTONIC: see rate.h */
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2,
              "lock-free 64-bit atomics");
static_assert(sizeof(_Atomic uint64_t) == 8, "a cell is eight bytes");
static_assert((SHM_RING_SLOTS & (SHM_RING_SLOTS - 1)) == 0, "a power of two");
static_assert(sizeof(struct shm_header) == 64, "no padding that compilers may differ about");
static_assert(sizeof(struct shm_process_cells) == 256, "four cache lines");
static_assert(offsetof(struct shm_process_cells, heartbeat_mono_ms) == 128, "own line");
static_assert(sizeof(struct shm_lock_cells) == 256, "four cache lines");
static_assert(sizeof(struct shm_ring) == 128 + 8 * SHM_RING_SLOTS, "two lines and the hints");
static_assert(sizeof(struct shm_target_cell) == 64, "a line of its own");
static_assert(sizeof(struct metrics_block) % SHM_CACHE_LINE == 0, "blocks don't share lines");

#endif
