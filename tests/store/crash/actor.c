/* Two eventfds hand the turn over, to the actor and back: never do both run. */
#include "tests/store/crash/actor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct actor {
    struct hand hand; /* first: pass_time gets its actor from it */
    struct gate *gate;
    struct gate_line *line;
    pthread_t thread;
    int turn, back;                /* eventfds */
    const struct program *program; /* NULL: the thread is to end */
    bool is_waiting;               /* gave the turn back to wait for time */
    int64_t waits_ms;
    enum actor_state state;
    unsigned long long history;
};

static _Noreturn void die(const char *what)
{
    perror(what);
    abort();
}

static void give(int fd)
{
    if (eventfd_write(fd, 1) < 0) {
        die("actor: the turn");
    }
}

static void take(int fd)
{
    eventfd_t value;

    if (eventfd_read(fd, &value) < 0) {
        die("actor: the turn");
    }
}

/* ---- within the thread ---- */

static void pass_time(struct hand *hand, int64_t ms)
{
    struct actor *actor = (struct actor *)hand;

    actor->is_waiting = true;
    actor->waits_ms = ms;
    give(actor->back);
    take(actor->turn);
}

static void *live(void *arg)
{
    struct actor *actor = arg;

    actor->hand.s = sync_store_open_lossy(gate_path(actor->gate), LOCK_TTL_MS, DEDUPE_TTL_MS);
    for (;;) {
        give(actor->back);
        take(actor->turn);
        if (!actor->program) {
            break;
        }
        actor->program->run(&actor->hand, actor->program);
    }
    sync_store_close(actor->hand.s);
    return NULL;
}

/* ---- the other side ---- */

static void wait_for(struct actor *actor)
{
    if (gate_hold(actor->line, actor->back)) {
        actor->state = ACTOR_CALLS;
        return;
    }
    take(actor->back);
    actor->state = actor->is_waiting ? ACTOR_WAITS : ACTOR_ENDED;
    actor->is_waiting = false;
}

struct actor *actor_create(struct gate *gate, char name, const struct settings *settings)
{
    struct actor *actor = calloc(1, sizeof(*actor));

    if (!actor) {
        die("actor");
    }
    actor->gate = gate;
    actor->hand.name = name;
    actor->hand.settings = settings;
    actor->hand.pass_time = pass_time;
    actor->turn = eventfd(0, EFD_CLOEXEC);
    actor->back = eventfd(0, EFD_CLOEXEC);
    if (actor->turn < 0 || actor->back < 0 ||
        pthread_create(&actor->thread, NULL, live, actor) != 0) {
        die("actor");
    }
    actor->line = gate_take_line(gate);
    for (;;) { /* the handshake */
        wait_for(actor);
        if (actor->state == ACTOR_ENDED) {
            return actor;
        }
        gate_execute(gate, gate_held(actor->line));
        gate_answer(gate, actor->line);
    }
}

void actor_destroy(struct actor **actor)
{
    if (!*actor) {
        return;
    }
    actor_kill(*actor);
    (*actor)->program = NULL;
    give((*actor)->turn);
    pthread_join((*actor)->thread, NULL);
    gate_line_close(&(*actor)->line);
    close((*actor)->turn);
    close((*actor)->back);
    free(*actor);
    *actor = NULL;
}

void actor_start(struct actor *actor, const struct program *program, struct journal *journal)
{
    actor->program = program;
    actor->hand.journal = journal;
    actor->hand.is_dead = false;
    actor->hand.made = 0;
    actor->history = 0xcbf29ce484222325U;
    give(actor->turn);
    wait_for(actor);
}

enum actor_state actor_state(const struct actor *actor)
{
    return actor->state;
}

const struct program *actor_program(const struct actor *actor)
{
    return actor->program;
}

struct gate_line *actor_line(const struct actor *actor)
{
    return actor->line;
}

int64_t actor_waits_ms(const struct actor *actor)
{
    return actor->waits_ms;
}

unsigned long long actor_history(const struct actor *actor)
{
    return actor->history;
}

void actor_answer(struct actor *actor)
{
    actor->history = gate_answer_hash(actor->gate, actor->history + 1);
    gate_answer(actor->gate, actor->line);
    wait_for(actor);
}

void actor_answer_lost(struct actor *actor)
{
    actor->history = actor->history * 31 + 7;
    gate_answer_lost(actor->line);
    wait_for(actor);
}

void actor_wake(struct actor *actor)
{
    actor->history = actor->history * 31 + 11;
    give(actor->turn);
    wait_for(actor);
}

void actor_kill(struct actor *actor)
{
    actor->hand.is_dead = true;
    while (actor->state != ACTOR_ENDED) {
        if (actor->state == ACTOR_CALLS) {
            gate_answer_lost(actor->line);
        } else {
            give(actor->turn);
        }
        wait_for(actor);
    }
}
