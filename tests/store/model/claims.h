/* Simulated workers: what they take, and what becomes of it. */
#ifndef TESTS_STORE_MODEL_CLAIMS_H
#define TESTS_STORE_MODEL_CLAIMS_H

#include "tests/store/model/operation.h"

bool perform_claim(struct world *world, const struct operation *operation);
bool perform_begin(struct world *world, const struct operation *operation);
bool perform_finish(struct world *world, const struct operation *operation);
bool perform_settle(struct world *world, const struct operation *operation);
bool perform_release(struct world *world, const struct operation *operation);
bool perform_stale(struct world *world, const struct operation *operation);
bool perform_death(struct world *world, const struct operation *operation);

/* A result that tells these members (bits) of the payloads that wait, as entry `number`'s. */
const char *model_result(int number, unsigned members, char room[64]);

#endif
