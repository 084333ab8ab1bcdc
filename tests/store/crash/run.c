/* Steps and faults. */
#include "tests/store/crash/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/crash/actor.h"
#include "tests/store/crash/ending.h"
#include "tests/store/crash/look.h"
#include "tests/store/support/still_clock.h"
#include "tests/store/support/valkey_fixture.h"

#define BEGINNING_MS INT64_C(1796000000000)

/* A hand of the test's own. */
struct main_hand {
    struct hand hand; /* first: callbacks get the rest from it */
    struct run *run;
};

struct run {
    struct still_clock *clock;
    struct valkey *server;
    struct sync_store *s;
    struct settings *settings;
    struct gate *gate;
    struct actor *actors[RUN_ACTORS];
    struct scenario scenario;
    struct journal journal, scene_journal;
    int64_t scene_ms;
    uint64_t digest; /* of the store */
    unsigned faults;
    struct gate_command late;
};

static uint64_t hash(uint64_t before, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t value = before;

    for (size_t i = 0; i < len; i++) {
        value = (value ^ at[i]) * 0x100000001b3U;
    }
    return value;
}

static void read_store(struct run *run)
{
    run->digest = look(run->s, run->settings, &run->journal);
}

static void main_pass_time(struct hand *hand, int64_t ms)
{
    struct run *run = ((struct main_hand *)hand)->run;

    still_clock_set_ms(run->clock, still_clock_ms(run->clock) + ms);
}

static void main_look(struct hand *hand)
{
    read_store(((struct main_hand *)hand)->run);
}

static struct main_hand make_hand(struct run *run, char name)
{
    return (struct main_hand){
        .hand = {.s = run->s,
                 .settings = run->settings,
                 .journal = &run->journal,
                 .name = name,
                 .pass_time = main_pass_time,
                 .look = main_look},
        .run = run,
    };
}

/* ---- setting up ---- */

/* Every wait is an hour: over when the test says so. */
static void set_limits(void)
{
    sync_limits.retry_backoff_ms = sync_limits.max_backoff_ms = AN_HOUR_MS;
    sync_limits.verify_delay_ms = sync_limits.repoll_after_ms = AN_HOUR_MS;
    sync_limits.verify_backoff_ms = sync_limits.max_verify_backoff_ms = AN_HOUR_MS;
}

struct run *run_create(void)
{
    struct run *run = calloc(1, sizeof(*run));

    if (!run) {
        abort();
    }
    set_limits();
    run->clock = still_clock_create(BEGINNING_MS);
    const struct valkey_options options = {
        .fsync = VALKEY_AOF_OFF,
        .extra = look_server_arguments,
        .environment = still_clock_environment(run->clock),
    };

    run->server = valkey_start(&options);
    run->s = sync_store_open(run->server->socket, LOCK_TTL_MS, DEDUPE_TTL_MS);
    run->settings = sync_settings(scene_configuration);
    look_init(run->s);
    run->gate = gate_open(run->server->socket);
    for (unsigned i = 0; i < RUN_ACTORS; i++) {
        run->actors[i] = actor_create(run->gate, (char)('1' + i), run->settings);
    }
    return run;
}

static void end_actors(struct run *run)
{
    for (unsigned i = 0; i < RUN_ACTORS; i++) {
        actor_kill(run->actors[i]);
    }
    gate_command_free(&run->late);
}

void run_destroy(struct run **run)
{
    if (!*run) {
        return;
    }
    end_actors(*run);
    for (unsigned i = 0; i < RUN_ACTORS; i++) {
        actor_destroy(&(*run)->actors[i]);
    }
    gate_close(&(*run)->gate);
    sync_store_close((*run)->s);
    settings_destroy(&(*run)->settings);
    valkey_stop(&(*run)->server);
    still_clock_destroy(&(*run)->clock);
    free(*run);
    *run = NULL;
}

bool run_set_scenario(struct run *run, const struct scenario *scenario)
{
    struct main_hand hand = make_hand(run, '0'), dead = make_hand(run, SCENE_DEAD_NAME);

    end_actors(run);
    run->scenario = *scenario;
    still_clock_set_ms(run->clock, BEGINNING_MS);
    memset(&run->journal, 0, sizeof(run->journal));
    sync_raw(run->s, "FLUSHALL");
    scenario->scene->build(&hand.hand, &dead.hand);
    read_store(run);
    look_keep(run->s, LOOK_SCENE);
    run->scene_ms = still_clock_ms(run->clock);
    memcpy(&run->scene_journal, &run->journal, sizeof(run->journal));
    return run->journal.why[0] == '\0';
}

void run_begin(struct run *run)
{
    end_actors(run);
    still_clock_set_ms(run->clock, run->scene_ms);
    look_go_back(run->s, LOOK_SCENE);
    memcpy(&run->journal, &run->scene_journal, sizeof(run->journal));
    run->faults = run->scenario.faults;
    read_store(run);
    for (unsigned i = 0; i < RUN_ACTORS; i++) {
        if (run->scenario.programs[i]) {
            actor_start(run->actors[i], run->scenario.programs[i], &run->journal);
        }
    }
}

/* ---- choices ---- */

unsigned run_choices(const struct run *run, struct choice ret[RUN_CHOICES_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < RUN_ACTORS; i++) {
        const enum actor_state state = actor_state(run->actors[i]);

        if (state != ACTOR_ENDED) {
            ret[count++] = (struct choice){CHOICE_STEP, i};
        }
        if (state == ACTOR_CALLS && run->faults > 0) {
            const bool may_be_late = !run->late.bytes;
            const bool is_read_only = gate_held(actor_line(run->actors[i]))->is_read_only;

            ret[count++] = (struct choice){CHOICE_KILL, i};
            if (may_be_late && !is_read_only) {
                ret[count++] = (struct choice){CHOICE_KILL_LATE, i};
            }
            if (may_be_late || is_read_only) {
                ret[count++] = (struct choice){CHOICE_LOSE, i};
            }
        }
    }
    if (run->late.bytes) {
        ret[count++] = (struct choice){CHOICE_LATE, 0};
    }
    return count;
}

static bool may_take(const struct run *run, struct choice choice)
{
    struct choice choices[RUN_CHOICES_MAX];
    const unsigned count = run_choices(run, choices);

    for (unsigned i = 0; i < count; i++) {
        if (choices[i].type == choice.type && choices[i].actor == choice.actor) {
            return true;
        }
    }
    return false;
}

/* ---- steps ---- */

static void step(struct run *run, struct actor *actor)
{
    if (actor_state(actor) == ACTOR_WAITS) {
        still_clock_set_ms(run->clock, still_clock_ms(run->clock) + actor_waits_ms(actor));
        actor_wake(actor);
        return;
    }
    gate_execute(run->gate, gate_held(actor_line(actor)));
    read_store(run); /* what the actor does next is judged by what the store holds now */
    actor_answer(actor);
}

/* Its supervisor sees it at once. */
static void die(struct run *run, unsigned i)
{
    struct actor *actor = run->actors[i];
    const struct program *next = program_after_death(actor_program(actor), (char)('1' + i));

    actor_kill(actor);
    if (next) {
        actor_start(actor, next, &run->journal);
    }
}

static void lose(struct run *run, struct actor *actor)
{
    if (!gate_held(actor_line(actor))->is_read_only) {
        run->late = gate_take_off(actor_line(actor));
    }
    actor_answer_lost(actor);
}

static void arrive_late(struct run *run)
{
    gate_execute(run->gate, &run->late);
    gate_command_free(&run->late);
    read_store(run);
}

bool run_take(struct run *run, struct choice choice)
{
    struct actor *actor = run->actors[choice.actor];

    if (!may_take(run, choice)) {
        return false;
    }
    switch (choice.type) {
    case CHOICE_STEP:
        step(run, actor);
        break;
    case CHOICE_KILL:
        run->faults--;
        die(run, choice.actor);
        break;
    case CHOICE_KILL_LATE:
        run->faults--;
        run->late = gate_take_off(actor_line(actor));
        die(run, choice.actor);
        break;
    case CHOICE_LOSE:
        run->faults--;
        lose(run, actor);
        break;
    case CHOICE_LATE:
        arrive_late(run);
        break;
    }
    return true;
}

const char *run_step_name(const struct run *run, struct choice choice)
{
    if (choice.type == CHOICE_LATE) {
        return run->late.name;
    }
    return actor_state(run->actors[choice.actor]) == ACTOR_CALLS
               ? gate_held(actor_line(run->actors[choice.actor]))->name
               : "time passes";
}

/* ---- keys ---- */

uint64_t run_rest_key(const struct run *run)
{
    const int64_t now_ms = still_clock_ms(run->clock);
    uint64_t key = hash(run->digest, &now_ms, sizeof(now_ms));

    key = hash(key, &run->journal, sizeof(run->journal));
    return hash(key, run->late.bytes, run->late.len);
}

uint64_t run_key(const struct run *run)
{
    uint64_t key = hash(run_rest_key(run), &run->faults, sizeof(run->faults));

    for (unsigned i = 0; i < RUN_ACTORS; i++) {
        const struct actor *actor = run->actors[i];
        const struct {
            const struct program *program;
            unsigned long long history, state;
        } stands = {actor_program(actor), actor_history(actor), actor_state(actor)};

        if (run->scenario.programs[i]) {
            key = hash(key, &stands, sizeof(stands));
        }
    }
    return key;
}

/* ---- the rest ---- */

void run_check_rest(struct run *run)
{
    struct main_hand hand = make_hand(run, '9');
    const int64_t now_ms = still_clock_ms(run->clock);
    const uint64_t digest = run->digest;
    struct journal journal;

    memcpy(&journal, &run->journal, sizeof(journal));
    look_keep(run->s, LOOK_POINT);
    ending_run(&hand.hand, run->gate, run->late.bytes ? &run->late : NULL);
    memcpy(journal.why, run->journal.why, sizeof(journal.why));
    memcpy(&run->journal, &journal, sizeof(journal));
    still_clock_set_ms(run->clock, now_ms);
    look_go_back(run->s, LOOK_POINT);
    run->digest = digest;
}

const char *run_why(const struct run *run)
{
    return run->journal.why;
}

/* ---- text ---- */

static const char marks[] = {[CHOICE_STEP] = ' ',
                             [CHOICE_KILL] = 'k',
                             [CHOICE_KILL_LATE] = 'z',
                             [CHOICE_LOSE] = 'r',
                             [CHOICE_LATE] = 'l'};

int choice_print(struct choice choice, char ret[4])
{
    switch (choice.type) {
    case CHOICE_STEP:
        return snprintf(ret, 4, "%u", (choice.actor + 1) % 10);
    case CHOICE_LATE:
        return snprintf(ret, 4, "l");
    case CHOICE_KILL:
    case CHOICE_KILL_LATE:
    case CHOICE_LOSE:
        break;
    }
    return snprintf(ret, 4, "%c%u", marks[choice.type], (choice.actor + 1) % 10);
}

bool choice_parse(const char *text, size_t len, struct choice *ret)
{
    const unsigned actor = len > 0 ? (unsigned)(text[len - 1] - '1') : RUN_ACTORS;

    if (len == 1 && text[0] == 'l') {
        *ret = (struct choice){CHOICE_LATE, 0};
        return true;
    }
    if (len == 0 || len > 2 || actor >= RUN_ACTORS) {
        return false;
    }
    for (unsigned type = CHOICE_KILL; len == 2 && type <= CHOICE_LOSE; type++) {
        if (text[0] == marks[type]) {
            *ret = (struct choice){(enum choice_type)type, actor};
            return true;
        }
    }
    *ret = (struct choice){CHOICE_STEP, actor};
    return len == 1;
}
