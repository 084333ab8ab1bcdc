/* A look at the whole store from outside: what its events say since the last one, how every entry
 * stands, and a digest of all keys; and copies of the store to go back to. */
#ifndef TESTS_STORE_CRASH_LOOK_H
#define TESTS_STORE_CRASH_LOOK_H

#include <stdint.h>

#include "tests/store/crash/journal.h"

/* Places for copies: databases of the server. */
enum look_place { LOOK_SCENE = 1, LOOK_POINT = 2 };

/* For the server that is looked at: what a key holds then depends on nothing but what was done. */
extern const char *const look_server_arguments[];
void look_init(struct sync_store *s);

/* Takes the events out of the streams, so that each is read once. Returns the digest. */
uint64_t look(struct sync_store *s, const struct settings *settings, struct journal *journal);

void look_keep(struct sync_store *s, enum look_place place);
void look_go_back(struct sync_store *s, enum look_place place);

/* What is left that should not be when all entries have ended; "" if nothing. */
const char *look_leftovers(struct sync_store *s);

#endif
