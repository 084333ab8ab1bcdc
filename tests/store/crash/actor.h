/* An actor: a program of store calls in a thread of its own, with a connection of its own that
 * goes through a gate. It moves only when it is told to; at any other time it stands before its
 * next step (or has ended), and everything it knows is still. */
#ifndef TESTS_STORE_CRASH_ACTOR_H
#define TESTS_STORE_CRASH_ACTOR_H

#include "tests/store/crash/gate.h"
#include "tests/store/crash/hand.h"
#include "tests/store/crash/program.h"

struct actor;

enum actor_state {
    ACTOR_ENDED,
    ACTOR_CALLS, /* a command is held */
    ACTOR_WAITS, /* for time to pass */
};

/* Connects; `name` as in struct hand. */
struct actor *actor_create(struct gate *gate, char name, const struct settings *settings);
void actor_destroy(struct actor **actor);

/* Runs a program up to its first step. The journal must live until it has ended. */
void actor_start(struct actor *actor, const struct program *program, struct journal *journal);
enum actor_state actor_state(const struct actor *actor);
const struct program *actor_program(const struct actor *actor);
struct gate_line *actor_line(const struct actor *actor);
/* How long it waits; of ACTOR_WAITS. */
int64_t actor_waits_ms(const struct actor *actor);
/* What it was told so far, as a number. */
unsigned long long actor_history(const struct actor *actor);

/* Its held command was carried out on the gate: passes the answer on, up to the next step. */
void actor_answer(struct actor *actor);
/* The answer (or the command) is lost: it goes on as its code does. */
void actor_answer_lost(struct actor *actor);
/* Time has passed. */
void actor_wake(struct actor *actor);
/* It does nothing more: its program is left where it stands. */
void actor_kill(struct actor *actor);

#endif
