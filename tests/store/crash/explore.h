/* Every order of a scenario's steps, with every fault at every step: a walk over the tree of
 * choices. Where two ways lead to the same state the second is not walked again, but counted. */
#ifndef TESTS_STORE_CRASH_EXPLORE_H
#define TESTS_STORE_CRASH_EXPLORE_H

#include "tests/store/crash/run.h"

struct explored {
    uint64_t interleavings; /* from the beginning to the end of all actors */
    uint64_t points;        /* states at which everything was stopped, recovered and checked */
    uint64_t states, runs, steps;
};

/* Adds to *counted. False: something did not hold; it has been printed. */
bool explore(struct run *run, const struct scenario *scenario, struct explored *counted);

/* Carries out one run, written as explore() prints it: "scene program [program]: choices".
 * Prints its steps. False: something did not hold, or there is no such run. */
bool explore_replay(struct run *run, const char *text);

#endif
