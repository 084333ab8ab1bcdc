#include "tests/store/model/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "tests/store/model/view.h"

#define DRAIN_ROUNDS        60
#define DRAIN_ROOM          1200 /* operations that empty the outbox at the end */
/* All keys are looked at after every step only while a failing run is shortened. */
#define STORE_CHECKED_EVERY 6
#define REPLAYS_MAX         3000

static bool carry_out(struct world *world, const struct operation *operation, uint64_t *applied)
{
    world->now = operation->number;
    world->count = operation->number + 1;
    if (!operation_perform(world, operation)) {
        return true;
    }
    if (applied) {
        applied[operation->type]++;
    }
    if (world->why[0] == '\0') {
        const bool is_whole = world->is_slow || operation->number % STORE_CHECKED_EVERY == 0;

        view_take(world, is_whole);
        check_view(world);
        if (is_whole) {
            check_store(world);
        }
    }
    return world->why[0] == '\0';
}

/* ---- the end: nothing is left once people have retried or discarded what failed ---- */

struct drain {
    struct world *world;
    int number, last;
    bool is_fine;
};

static void drain_step(struct drain *drain, enum operation_type type, int ws, int entry, unsigned x)
{
    const struct operation operation = {
        .type = type, .number = drain->number, .ws = ws, .entry = entry, .x = x};

    if (drain->is_fine && drain->number < drain->last) {
        drain->number++;
        drain->is_fine = carry_out(drain->world, &operation, NULL);
    }
}

static void drain_round(struct drain *drain, unsigned round)
{
    struct world *world = drain->world;
    const int count = drain->number;

    drain_step(drain, OPERATION_TIME, 0, MODEL_NONE, 0);
    for (int ws = 0; ws < MODEL_WORKSPACES; ws++) {
        drain_step(drain, OPERATION_CLAIM, ws, MODEL_NONE, 11);
    }
    for (int i = 0; i < count; i++) {
        if (world->entries[i].has_claim) {
            drain_step(drain, OPERATION_FINISH, 0, i, round % 4);
        }
    }
    for (int i = 0; i < count && round % 4 == 3; i++) {
        if (world_is_open(world, i) && strcmp(world->entries[i].seen.status, "error") == 0) {
            drain_step(drain, (unsigned)i % 3 == 0 ? OPERATION_REMOVE : OPERATION_RETRY, 0, i, 0);
        }
    }
}

static bool drain(struct world *world, int first)
{
    struct drain drain = {.world = world, .number = first, .last = world->room, .is_fine = true};
    int left = 1;

    for (int i = 0; i < first; i++) {
        if (world->entries[i].has_claim) {
            drain_step(&drain, OPERATION_DEATH, 0, i, 0);
        }
    }
    for (int ws = 0; ws < MODEL_WORKSPACES; ws++) {
        sync_recover_all(world->s, world->workspaces[ws]);
        drain_step(&drain, OPERATION_RESUME, ws, MODEL_NONE, 0);
        drain_step(&drain, OPERATION_UNPARK, ws, MODEL_NONE, 0);
    }
    for (unsigned round = 0; round < DRAIN_ROUNDS && left > 0 && drain.is_fine; round++) {
        drain_round(&drain, round);
        left = 0;
        for (int i = 0; i < world->count; i++) {
            left += world_is_open(world, i);
        }
    }
    for (int i = 0; i < world->count && drain.is_fine; i++) {
        if (world_is_open(world, i)) {
            world_fail(world, "e%d is still %s at the end", i, world->entries[i].seen.status);
        }
    }
    return world->why[0] == '\0';
}

/* ---- runs ---- */

static bool end_run(struct model_run *run, struct world *world)
{
    const bool holds = world->why[0] == '\0' && drain(world, run->steps);

    memcpy(run->why, world->why, sizeof(run->why));
    world_done(world);
    return holds;
}

bool run_drawn(struct model_run *run, uint64_t seed)
{
    uint64_t rng = seed * 0x9e3779b97f4a7c15U + 1;
    struct world world;

    world_init(&world, run->s, run->settings, run->steps + DRAIN_ROOM);
    for (run->count = 0; run->count < (size_t)run->steps && world.why[0] == '\0'; run->count++) {
        run->operations[run->count] = operation_draw(&world, (int)run->count, &rng);
        carry_out(&world, &run->operations[run->count], run->applied);
    }
    return end_run(run, &world);
}

/* The same complaint, whichever entries it names: a shorter run that fails in another way says
 * nothing about this one. */
static bool is_alike(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b || *a == '\0') {
            return *a == *b;
        }
        a++;
        b++;
    }
}

/* The run without operations [from, to). */
static bool run_without(struct model_run *run, size_t from, size_t to)
{
    struct world world;

    world_init(&world, run->s, run->settings, run->steps + DRAIN_ROOM);
    world.is_slow = true;
    for (size_t i = 0; i < run->count && world.why[0] == '\0'; i++) {
        if (i < from || i >= to) {
            carry_out(&world, &run->operations[i], NULL);
        }
    }
    return end_run(run, &world);
}

static void drop(struct model_run *run, size_t from, size_t to)
{
    memmove(&run->operations[from], &run->operations[to],
            (run->count - to) * sizeof(run->operations[0]));
    run->count -= to - from;
}

void run_shrink(struct model_run *run)
{
    unsigned replays = 0;
    char why[sizeof(run->why)];
    bool has_dropped = true;

    memcpy(why, run->why, sizeof(why));
    for (size_t size = run->count / 2;
         size > 0 && replays<REPLAYS_MAX; size = size> 1 ? size / 2 : has_dropped) {
        has_dropped = false;
        for (size_t from = run->count; from > 0 && replays < REPLAYS_MAX; replays++) {
            const size_t begin = from > size ? from - size : 0;

            if (!run_without(run, begin, from) && is_alike(run->why, why)) {
                drop(run, begin, from);
                memcpy(why, run->why, sizeof(why));
                has_dropped = true;
            }
            from = begin;
        }
    }
    fprintf(stderr, "The shortest run that was found (%zu operations):\n", run->count);
    for (size_t i = 0; i < run->count; i++) {
        operation_print(&run->operations[i], stderr);
    }
    fprintf(stderr, "%s\n", why);
    memcpy(run->why, why, sizeof(why));
}
