/* Several words that belong together, one writer, any number of readers: a sequence number, odd
 * while the words are written. Made of release stores and acquire loads only: no fence, so that
 * ThreadSanitizer understands it. */
#ifndef COMMON_SHM_SEQLOCK_H
#define COMMON_SHM_SEQLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEQLOCK_TRIES 4

static inline void seqlock_write(_Atomic uint64_t *seq, _Atomic uint64_t *words,
                                 const uint64_t *from, size_t count)
{
    /* Odd whatever stood there, and another number than before. */
    const uint64_t writing = (atomic_load_explicit(seq, memory_order_relaxed) + 1) | 1;

    atomic_store_explicit(seq, writing, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) {
        /* Release: who sees this word sees the odd number, too. */
        atomic_store_explicit(&words[i], from[i], memory_order_release);
    }
    atomic_store_explicit(seq, writing + 1, memory_order_release);
}

/* False after a few tries: being written all the time, or garbage. `to` is scratch then. */
static inline bool seqlock_read(_Atomic uint64_t *seq, _Atomic uint64_t *words, uint64_t *to,
                                size_t count)
{
    for (int try = 0; try < SEQLOCK_TRIES; try++) {
        const uint64_t before = atomic_load_explicit(seq, memory_order_acquire);
        if (before & 1) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            to[i] = atomic_load_explicit(&words[i], memory_order_acquire);
        }
        if (atomic_load_explicit(seq, memory_order_relaxed) == before) {
            return true;
        }
    }
    return false;
}

#endif
