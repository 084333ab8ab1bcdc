/* The store at one moment, put beside what the model knows of each entry; and what a script finds
 * wrong by itself: dependencies and their way back, markers. */
#ifndef TESTS_STORE_MODEL_VIEW_H
#define TESTS_STORE_MODEL_VIEW_H

#include "tests/store/model/world.h"

/* Reads every workspace into the entries' `seen`, counts `sent` events. `is_whole`: looks at all
 * keys there are, for markers and for what was left behind. */
void view_take(struct world *world, bool is_whole);
/* What holds of any state, whatever led to it: of what the last view showed. */
void check_view(struct world *world);
/* The same of all keys of the store, which takes several times as long; and that claims find every
 * open entry. */
void check_store(struct world *world);

#endif
