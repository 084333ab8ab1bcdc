/* A run of operations, carried out from an empty store to an empty outbox; and the shortest part of
 * a failing one that still fails. */
#ifndef TESTS_STORE_MODEL_SHRINK_H
#define TESTS_STORE_MODEL_SHRINK_H

#include "tests/store/model/operation.h"

struct model_run {
    struct sync_store *s;
    const struct settings *settings;
    struct operation *operations;
    size_t count;
    int steps;     /* numbers of operations are below it */
    char why[512]; /* what did not hold */
    uint64_t applied[OPERATION_COUNT];
};

/* Draws and carries out `steps` operations; they are recorded in `operations`. True: all held. */
bool run_drawn(struct model_run *run, uint64_t seed);
/* Drops operations as long as it still fails, and prints what is left. */
void run_shrink(struct model_run *run);

#endif
