/* What stands in the store before the actors begin: two entries, `a` and `b`, of the clients'
 * messages `ma` and `mb`. */
#ifndef TESTS_STORE_CRASH_SCENE_H
#define TESTS_STORE_CRASH_SCENE_H

#include "tests/store/crash/hand.h"

/* Tokens of a worker that died before. */
#define SCENE_DEAD_NAME   '8'
#define SCENE_DEAD_PREFIX "node.1.8."

struct scene {
    const char *name;
    /* In an empty store. `dead` is the worker that dies: what it holds stays held. */
    void (*build)(struct hand *hand, struct hand *dead);
};

extern const struct scene scenes[];
extern const unsigned scene_count;
const struct scene *scene_find(const char *name);

extern const char scene_configuration[];

#endif
