/* What actors do. A program is written once; each step of it is one call of the store. */
#ifndef TESTS_STORE_CRASH_PROGRAM_H
#define TESTS_STORE_CRASH_PROGRAM_H

#include "common/store/store_workspace.h"
#include "tests/store/crash/work.h"

struct program {
    const char *name;
    void (*run)(struct hand *hand, const struct program *program);
    struct work_plan plan;             /* of workers */
    enum resolver_operation operation; /* of people */
    enum walk_kind walk;
    bool is_paused;
    const char *id, *text;  /* the entry that it is about; a patch, a result, a prefix */
    struct message message; /* of clients */
};

extern const struct program programs[];
extern const unsigned program_count;
const struct program *program_find(const char *name);

/* What a supervisor does when the worker `name` has died; NULL: nothing follows that program. */
const struct program *program_after_death(const struct program *program, char name);

#endif
