/* What attacks on the scripts share: one workspace `ws` on a private server, empty before each
 * test, with one-line ways to accept, claim and spoil. For programs that hold attacks only. */
#ifndef TESTS_STORE_SUPPORT_ATTACK_SCENE_H
#define TESTS_STORE_SUPPORT_ATTACK_SCENE_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/store/support/sync_store.h"

struct CMUnitTest;

#define TOKEN_A         "node.1.4.a.1"
#define TOKEN_B         "node.1.5.b.1"
#define ATTACK_LOCK_TTL 60000

extern struct sync_store *s;
extern unsigned p; /* the partition of "ws" */

/* Fails the test unless all invariants of the store hold. */
void holds(void);
enum accept_result accept_in(const char *ses, const char *id, const char *cmid, const char *flags);
struct taken_list claim(const char *token);
struct taken claim_one(const char *token, const char *expected_id);
/* What a session whose lock ended looks like when its deadline has come. */
void expire_lock(const char *ses);
void make_due(const char *ses, const char *id);
void park_by_hand(const char *id);
long long number_of(const char *text);
bool is_locked(const char *ses);

int attack_begin(void **state);
int attack_end(void **state);
#define ATTACK(name) cmocka_unit_test_setup_teardown(name, attack_begin, attack_end)
/* A server for all of them; the exit status. */
int attacks_run(const char *name, const struct CMUnitTest *tests, size_t count);

#endif
