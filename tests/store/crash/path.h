/* The choices of a run: as text, carried out again, made shorter. */
#ifndef TESTS_STORE_CRASH_PATH_H
#define TESTS_STORE_CRASH_PATH_H

#include <stdio.h>

#include "tests/store/crash/run.h"

#define PATH_MAX_CHOICES 200

struct path {
    struct choice choices[PATH_MAX_CHOICES];
    unsigned count;
};

/* "scene program [program]: choices", in one line without its end. */
void path_print(const struct scenario *scenario, const struct path *path, FILE *out);
/* False: there is no such scenario. As many faults as the path has are allowed. */
bool path_parse(const char *text, struct scenario *ret_scenario, struct path *ret);

/* Carries it out from the scene, checking what all would come to after each step, and says what it
 * does. What can't be taken is left out. run_why tells what did not hold. */
void path_replay(struct run *run, const struct scenario *scenario, const struct path *path,
                 FILE *out);
/* Leaves out choices as long as the same thing does not hold. */
void path_shrink(struct run *run, const struct scenario *scenario, struct path *path,
                 const char *why);

#endif
