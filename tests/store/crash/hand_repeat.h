/* What hand.c and hand_worker.c share: whether the last call was answered. */
#ifndef TESTS_STORE_CRASH_HAND_REPEAT_H
#define TESTS_STORE_CRASH_HAND_REPEAT_H

#include "tests/store/crash/hand.h"

static inline bool was_answered(const struct hand *hand)
{
    return hand->s->result == STORE_OK && !hand->is_dead;
}

static inline bool must_repeat(const struct hand *hand)
{
    return hand->s->result != STORE_OK && !hand->is_dead;
}

#endif
