/* What people do to entries: retry, edit, remove. */
#ifndef TESTS_STORE_MODEL_PEOPLE_H
#define TESTS_STORE_MODEL_PEOPLE_H

#include "tests/store/model/operation.h"

bool perform_retry(struct world *world, const struct operation *operation);
bool perform_edit(struct world *world, const struct operation *operation);
bool perform_remove(struct world *world, const struct operation *operation);

#endif
