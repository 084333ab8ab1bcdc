/* One step of the model test, as it can be written down and carried out again, also where others
 * are left out: it names entries by number, and does nothing where it does not apply. */
#ifndef TESTS_STORE_MODEL_OPERATION_H
#define TESTS_STORE_MODEL_OPERATION_H

#include <stddef.h>
#include <stdio.h>

#include "tests/store/model/world.h"

enum operation_type {
#define OPERATION(id, name, weight) OPERATION_##id,
#include "tests/store/model/operation.def"
    OPERATION_COUNT,
};

struct operation {
    enum operation_type type;
    int number; /* its place in the whole run: also of the entry that it makes */
    int ws, entry;
    int deps[3], dep_count; /* of an acceptance; MODEL_NONE: an ID that never was */
    unsigned x;             /* whatever else was drawn */
};

extern const unsigned operation_weights[OPERATION_COUNT];
void operation_print(const struct operation *operation, FILE *out);

/* What `x` says of an acceptance. */
int operation_lane(const struct operation *operation);
int operation_kind(const struct operation *operation);
unsigned operation_null_members(const struct operation *operation); /* bits */
bool operation_has_cmid(const struct operation *operation);

/* Carries it out on the store and on the model. False: it does not apply. */
bool operation_perform(struct world *world, const struct operation *operation);

/* Draws the next one from what there is; *rng changes. */
struct operation operation_draw(const struct world *world, int number, uint64_t *rng);

#endif
