/* What each worker holds, shown to others: written by that worker alone, read by anybody as copies.
 * Which indexes are free is the worker's private knowledge, so nothing in the segment can make it
 * write out of place. */
#include <errno.h>
#include <string.h>

#include "common/core/keys.h"
#include "common/shm/metrics_layout.h"
#include "common/shm/seqlock.h"
#include "common/shm/shm_private.h"

/* words[0]: bits 0-7 activity + 1 (0: free), 8-15 kind, 16-23 length of workspace, 24-31 of
 * session. */
enum lock_word {
    WORD_META,
    WORD_CLAIM,
    WORD_STARTED,
    WORD_WORKSPACE,
    WORD_SESSION = WORD_WORKSPACE + SHM_LOCK_WORKSPACE_WORDS,
};
static_assert(WORD_WORKSPACE == SHM_LOCK_META_WORDS, "the words of the layout");
static_assert(SHM_LOCK_WORKSPACE_WORDS * 8 == WORKSPACE_MAX, "a workspace name fits exactly");
static_assert(SHM_LOCK_SESSION_WORDS * 8 == SESSION_MAX, "a session name fits exactly");
static_assert(sizeof(((struct shm_lock *)0)->workspace) == WORKSPACE_MAX + 1, "and its NUL");
static_assert(sizeof(((struct shm_lock *)0)->session) == SESSION_MAX + 1, "and its NUL");

const char *shm_lock_activity_name(enum shm_lock_activity activity)
{
    switch (activity) {
    case SHM_LOCK_SENDING:
        return "sending";
    case SHM_LOCK_VERIFYING:
        return "verifying";
    case SHM_LOCK_ACTIVITY_COUNT:
        break;
    }
    return "invalid";
}

/* 0, or -ENOSPC for what can't be shown. */
static int encode(const struct shm_lock *lock, uint64_t words[SHM_LOCK_WORDS])
{
    const size_t workspace_len = strnlen(lock->workspace, sizeof(lock->workspace));
    const size_t session_len = strnlen(lock->session, sizeof(lock->session));
    if (!workspace_name_is_valid(lock->workspace, workspace_len) ||
        !session_name_is_valid(lock->session, session_len) ||
        (unsigned)lock->activity >= SHM_LOCK_ACTIVITY_COUNT) {
        return -ENOSPC;
    }
    const uint32_t kind = lock->kind < LABEL_KIND_MAX ? lock->kind : LABEL_KIND_OTHER;

    memset(words, 0, SHM_LOCK_WORDS * sizeof(words[0]));
    words[WORD_META] = ((uint64_t)lock->activity + 1) | (uint64_t)kind << 8 |
                       (uint64_t)workspace_len << 16 | (uint64_t)session_len << 24;
    words[WORD_CLAIM] = lock->claim;
    words[WORD_STARTED] = (uint64_t)lock->started_mono_ms;
    memcpy(&words[WORD_WORKSPACE], lock->workspace, workspace_len);
    memcpy(&words[WORD_SESSION], lock->session, session_len);
    return 0;
}

/* False for a free entry and for anything that encode() would not have written. */
static bool decode(const uint64_t words[SHM_LOCK_WORDS], struct shm_lock *ret)
{
    const uint64_t meta = words[WORD_META];
    const unsigned activity_plus_1 = meta & 0xff;
    const uint32_t kind = meta >> 8 & 0xff;
    const size_t workspace_len = meta >> 16 & 0xff;
    const size_t session_len = meta >> 24 & 0xff;

    if (activity_plus_1 < 1 || activity_plus_1 > SHM_LOCK_ACTIVITY_COUNT ||
        workspace_len > WORKSPACE_MAX || session_len > SESSION_MAX) {
        return false;
    }
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->workspace, &words[WORD_WORKSPACE], workspace_len);
    memcpy(ret->session, &words[WORD_SESSION], session_len);
    if (!workspace_name_is_valid(ret->workspace, workspace_len) ||
        !session_name_is_valid(ret->session, session_len)) {
        return false;
    }
    ret->activity = (enum shm_lock_activity)(activity_plus_1 - 1);
    ret->kind = kind < LABEL_KIND_MAX ? kind : LABEL_KIND_OTHER;
    ret->claim = words[WORD_CLAIM];
    ret->started_mono_ms = (int64_t)(words[WORD_STARTED] & INT64_MAX);
    return true;
}

static struct shm_lock_cells *own_lock(const struct shm *shm, uint32_t index)
{
    return shm_lock_at(shm, shm->my_slot - SHM_SLOT_WORKER_FIRST, index);
}

/* Whether `index` is one that lock_table_put gave out: asked of private memory. */
static bool is_in_use(const struct shm *shm, int index)
{
    return shm->lock_in_use && index >= 0 && (uint32_t)index < shm->locks_per_worker &&
           shm->lock_in_use[index];
}

static void mark_free(struct shm_lock_cells *cells)
{
    const uint64_t none = 0;

    seqlock_write(&cells->seq, &cells->words[WORD_META], &none, 1);
}

int lock_table_put(struct shm *shm, const struct shm_lock *lock)
{
    if (!shm->free_locks) {
        return -EINVAL;
    }
    uint64_t words[SHM_LOCK_WORDS];
    const int err = encode(lock, words);
    if (err < 0) {
        return err;
    }
    if (shm->free_lock_count == 0) {
        return -ENOSPC;
    }
    const uint32_t index = shm->free_locks[--shm->free_lock_count];
    struct shm_lock_cells *cells = own_lock(shm, index);

    shm->lock_in_use[index] = 1;
    seqlock_write(&cells->seq, cells->words, words, SHM_LOCK_WORDS);
    return (int)index;
}

void lock_table_update(struct shm *shm, int index, const struct shm_lock *lock)
{
    uint64_t words[SHM_LOCK_WORDS];

    if (is_in_use(shm, index) && encode(lock, words) == 0) {
        struct shm_lock_cells *cells = own_lock(shm, (uint32_t)index);
        seqlock_write(&cells->seq, cells->words, words, SHM_LOCK_WORDS);
    }
}

void lock_table_clear(struct shm *shm, int index)
{
    if (!is_in_use(shm, index)) {
        return;
    }
    mark_free(own_lock(shm, (uint32_t)index));
    shm->lock_in_use[index] = 0;
    shm->free_locks[shm->free_lock_count++] = (uint32_t)index;
}

void lock_table_reset(struct shm *shm, uint32_t slot)
{
    if (!shm_is_worker_slot(shm, slot)) {
        return;
    }
    for (uint32_t i = 0; i < shm->locks_per_worker; i++) {
        mark_free(shm_lock_at(shm, slot - SHM_SLOT_WORKER_FIRST, i));
    }
}

size_t lock_table_each(const struct shm *shm, uint32_t slot, shm_lock_cb *cb, void *arg)
{
    if (!shm_is_worker_slot(shm, slot)) {
        return 0;
    }
    size_t count = 0;

    for (uint32_t i = 0; i < shm->locks_per_worker; i++) {
        struct shm_lock_cells *cells = shm_lock_at(shm, slot - SHM_SLOT_WORKER_FIRST, i);
        /* Most are free: one load tells, before 27 of them are copied. */
        if (atomic_load_explicit(&cells->words[WORD_META], memory_order_relaxed) == 0) {
            continue;
        }
        uint64_t words[SHM_LOCK_WORDS];
        struct shm_lock lock;
        if (seqlock_read(&cells->seq, cells->words, words, SHM_LOCK_WORDS) &&
            decode(words, &lock)) {
            cb(&lock, arg);
            count++;
        }
    }
    return count;
}
