/* Hints between processes: one single-producer single-consumer ring per ordered pair that talks. A
 * hint that is lost costs latency at most, so a full ring drops and counts, and whatever the cells
 * hold, both ends come right again.
 *
 *      tail (consumer)        head (producer)        both count up for ever; slot = count % 256
 *        v                      v                    used = head - tail; more than 256 is garbage:
 *   ...  [ taken | 5 | 7 | 9 |  free ... ]           the consumer then starts anew at head
 *
 * No lost wake-up. Producer: store head, then look at wants_wake. Consumer: set wants_wake, then
 * look at head. All four are sequentially consistent, so at least one of the two sees the other.
 * The flag is cleared by whoever signals; if that process dies between the two, or a stray byte
 * clears it, the consumer's own look once a second is the bound. */
#include "common/shm/metrics.h"
#include "common/shm/shm_private.h"
#include "common/shm/wake.h"

/* Places of the rings of one worker. */
#define RING_FROM_SUPERVISOR 0U
#define RING_FROM_API        1U
#define RING_TO_API          (RING_FROM_API + SHM_API_SLOTS)
static_assert(RING_TO_API + SHM_API_SLOTS == SHM_RINGS_PER_WORKER, "the rings of the layout");

/* The ring of an ordered pair and the metric label of its sort; NULL where no such pair talks. */
static struct shm_ring *find_ring(const struct shm *shm, uint32_t from, uint32_t to,
                                  enum label_ring *ret_sort)
{
    if (shm_is_worker_slot(shm, to)) {
        const uint32_t worker = to - SHM_SLOT_WORKER_FIRST;
        if (from == SHM_SLOT_SUPERVISOR) {
            *ret_sort = LABEL_RING_SUPERVISOR_WORKER;
            return shm_ring_at(shm, worker, RING_FROM_SUPERVISOR);
        }
        if (shm_is_api_slot(from)) {
            *ret_sort = LABEL_RING_API_WORKER;
            return shm_ring_at(shm, worker, RING_FROM_API + (from - SHM_SLOT_API_FIRST));
        }
        return NULL;
    }
    if (shm_is_api_slot(to) && shm_is_worker_slot(shm, from)) {
        *ret_sort = LABEL_RING_WORKER_API;
        return shm_ring_at(shm, from - SHM_SLOT_WORKER_FIRST,
                           RING_TO_API + (to - SHM_SLOT_API_FIRST));
    }
    return NULL;
}

static bool ring_push(struct shm_ring *ring, uint64_t hint)
{
    const uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

    if (head - tail >= SHM_RING_SLOTS) {
        return false; /* full, or garbage that the consumer puts right */
    }
    atomic_store_explicit(&ring->hints[head % SHM_RING_SLOTS], hint, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + 1, memory_order_seq_cst);
    return true;
}

/* Copies out what is there now: the slots are free again before anybody acts on a hint. */
static size_t ring_take(struct shm_ring *ring, uint64_t hints[SHM_RING_SLOTS])
{
    const uint64_t head = atomic_load_explicit(&ring->head, memory_order_seq_cst);
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    const uint64_t used = head - tail;
    const size_t count = used <= SHM_RING_SLOTS ? (size_t)used : 0;

    for (size_t i = 0; i < count; i++) {
        hints[i] =
            atomic_load_explicit(&ring->hints[(tail + i) % SHM_RING_SLOTS], memory_order_relaxed);
    }
    if (used > 0) {
        atomic_store_explicit(&ring->tail, head, memory_order_release);
    }
    return count;
}

bool shm_hint_push(struct shm *shm, uint32_t to_slot, uint64_t hint)
{
    enum label_ring sort;
    struct shm_ring *ring = find_ring(shm, shm->my_slot, to_slot, &sort);

    if (!ring) {
        return false;
    }
    if (!ring_push(ring, hint)) {
        metrics_add(metrics_of(shm), METRIC_ring_drops_total, sort, 1);
        return false;
    }
    return true;
}

bool shm_hint_send(struct shm *shm, const struct wake_set *wakes, uint32_t to_slot, uint64_t hint)
{
    const bool is_pushed = shm_hint_push(shm, to_slot, hint);

    if (shm->my_slot == SHM_NO_SLOT || to_slot >= shm_slot_count(shm)) {
        return is_pushed;
    }
    /* After a drop, too: a consumer that is behind has all the more reason to wake. */
    _Atomic uint64_t *wants_wake = &shm_process_at(shm, to_slot)->wants_wake;
    if (atomic_load_explicit(wants_wake, memory_order_seq_cst) != 0 &&
        atomic_exchange_explicit(wants_wake, 0, memory_order_seq_cst) != 0) {
        wake_signal(wakes->fds[to_slot]);
    }
    return is_pushed;
}

static size_t drain_pair(struct shm *shm, uint32_t from_slot, shm_hint_cb *cb, void *arg)
{
    enum label_ring sort;
    struct shm_ring *ring = find_ring(shm, from_slot, shm->my_slot, &sort);
    if (!ring) {
        return 0;
    }
    uint64_t hints[SHM_RING_SLOTS];
    const size_t count = ring_take(ring, hints);
    for (size_t i = 0; i < count; i++) {
        cb(from_slot, hints[i], arg);
    }
    return count;
}

size_t shm_hint_drain(struct shm *shm, shm_hint_cb *cb, void *arg)
{
    if (shm->my_slot == SHM_NO_SLOT) {
        return 0;
    }
    size_t total = 0;

    /* First of all: what is pushed from here on signals, what was pushed before is seen below. */
    atomic_store_explicit(&shm_process_at(shm, shm->my_slot)->wants_wake, 1, memory_order_seq_cst);
    for (uint32_t from = 0; from < shm_slot_count(shm); from++) {
        total += drain_pair(shm, from, cb, arg);
    }
    return total;
}
