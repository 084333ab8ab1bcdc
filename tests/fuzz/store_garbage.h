/* In the place of the store's connections: answers every call with what an input says, as if that
 * stood in the store. Whoever links it makes typed calls (common/store/store.h) without a server.
 *
 * Replies are text, so that a person can write seeds and a mutation keeps its form:
 *   word  a string; %XX is a byte      :5   an integer
 *   [a b] a list                       ~    nil
 *   !word an error                     ?    no reply came (the connection was cut)
 * apart by blanks and line feeds. Calls beyond the last reply are cut, so that every input ends. */
#ifndef TESTS_FUZZ_STORE_GARBAGE_H
#define TESTS_FUZZ_STORE_GARBAGE_H

#include "common/core/span.h"
#include "common/store/store_internal.h"

struct store_garbage {
    struct store store;
    struct span rest; /* of the input */
};

void store_garbage_init(struct store_garbage *garbage, struct span replies);
/* Answers what was asked, and what that asks in turn, until nothing is asked any more. */
void store_garbage_run(struct store_garbage *garbage);

#endif
