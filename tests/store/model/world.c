#include "tests/store/model/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char model_configuration[] =
    "target: {url: \"http://127.0.0.1:1/\"}\n"
    "kinds:\n"
    "  - {name: note.create, url: /n, idempotent: true, follow_up_edit: note.update,"
    " follow_up_remove: note.delete}\n"
    "  - {name: note.update, url: /n, idempotent: true}\n"
    "  - {name: note.delete, url: /n, idempotent: true}\n"
    "  - {name: pay.create, url: /p, follow_up_remove: pay.undo,"
    " verify: {url: \"/p/{id}\", delivered: 200, absent: 404}}\n"
    "  - {name: pay.undo, url: /p, idempotent: true}\n"
    "  - {name: mark.set, url: /m, ordering: first-due, idempotent: true,"
    " follow_up_edit: mark.update}\n"
    "  - {name: mark.update, url: /m, ordering: first-due, idempotent: true}\n"
    "  - {name: task.run, url: /t, ordering: first-due, follow_up_edit: task.update}\n"
    "  - {name: task.update, url: /t, ordering: first-due}\n";

const struct model_kind model_kinds[] = {
    {"note.create", true, 1, 2},
    {"note.update", true, MODEL_NONE, MODEL_NONE},
    {"note.delete", true, MODEL_NONE, MODEL_NONE},
    {"pay.create", false, MODEL_NONE, 4},
    {"pay.undo", true, MODEL_NONE, MODEL_NONE},
    {"mark.set", true, 6, MODEL_NONE},
    {"mark.update", true, MODEL_NONE, MODEL_NONE},
    {"task.run", false, 8, MODEL_NONE},
    {"task.update", false, MODEL_NONE, MODEL_NONE},
};

const char *const model_lanes[MODEL_LANES] = {"a", "b", "loose"};

bool model_lane_is_strict(int lane)
{
    return lane != 2;
}

int model_kind_of_lane(int lane, unsigned variant)
{
    return model_lane_is_strict(lane) ? (variant ? 3 : 0) : (variant ? 7 : 5);
}

/* The first two workspaces share a partition. */
static void name_workspaces(struct world *world)
{
    uint32_t first = 0;
    int named = 0;

    for (int i = 0; named < MODEL_WORKSPACES; i++) {
        char name[8];
        const int len = snprintf(name, sizeof(name), "w%d", i % 10000);
        const uint32_t p = partition_of(name, (size_t)len);

        if (named == 0) {
            first = p;
        }
        if (named == 0 || (p == first) == (named == 1)) {
            memcpy(world->workspaces[named++], name, sizeof(name));
        }
    }
}

void world_init(struct world *world, struct sync_store *s, const struct settings *settings,
                int room)
{
    *world = (struct world){.s = s, .settings = settings, .room = room};
    world->entries = calloc((size_t)room, sizeof(world->entries[0]));
    if (!world->entries) {
        abort();
    }
    name_workspaces(world);
    sync_raw(s, "FLUSHALL");
}

void world_done(struct world *world)
{
    free(world->entries);
    world->entries = NULL;
}

void world_fail(struct world *world, const char *format, ...)
{
    va_list args;

    if (world->why[0] == '\0') {
        const int at = snprintf(world->why, sizeof(world->why), "operation %d: ", world->now);

        va_start(args, format);
        vsnprintf(world->why + at, sizeof(world->why) - (size_t)at, format, args);
        va_end(args);
    }
}

int world_number(const struct world *world, const char *id)
{
    const long number = id[0] == 'e' ? strtol(id + 1, NULL, 10) : -1;

    return number >= 0 && number < world->count ? (int)number : MODEL_NONE;
}

const char *world_id(int number, char room[16])
{
    snprintf(room, 16, number < 0 ? "never" : "e%d", number);
    return room;
}

int world_resolve(const struct world *world, int number)
{
    while (number >= 0 && world->entries[number].state == MODEL_REPLACED) {
        number = world->entries[number].replaced_by;
    }
    return number;
}

bool world_is_open(const struct world *world, int number)
{
    return number >= 0 && world->entries[number].state == MODEL_OPEN;
}

bool world_waits_for(const struct world *world, int number, int other)
{
    const struct model_entry *entry = &world->entries[number];

    for (int i = 0; i < entry->dep_count; i++) {
        if (!entry->deps[i].is_waived && world_resolve(world, entry->deps[i].on) == other) {
            return entry->state == MODEL_OPEN;
        }
    }
    return false;
}

int64_t world_rank(const struct world *world, int number)
{
    const struct model_entry *entry = &world->entries[number];
    int64_t lowest = entry->seen.accepted_ms > 0 ? entry->seen.accepted_ms : INT64_MAX;

    if (entry->rank_floor > 0 && entry->rank_floor < lowest) {
        lowest = entry->rank_floor;
    }
    for (int i = 0; i < world->count; i++) {
        if (world_waits_for(world, i, number)) {
            const int64_t other = world_rank(world, i);

            lowest = other < lowest ? other : lowest;
        }
    }
    return lowest;
}

struct model_entry *world_create(struct world *world, int number, int ws, int lane, int kind)
{
    struct model_entry *entry = &world->entries[number];

    *entry = (struct model_entry){
        .state = MODEL_OPEN,
        .ws = ws,
        .lane = lane,
        .kind = kind,
        .root = MODEL_NONE,
        .version = number,
        .values = {MODEL_NONE, MODEL_NONE},
        .conflict = MODEL_NONE,
        .if_match = MODEL_NONE,
    };
    return entry;
}

static void fill(struct model_entry *entry, const struct model_entry *from, int number,
                 unsigned members)
{
    for (int m = 0; m < MODEL_MEMBERS; m++) {
        if (entry->values[m] == MODEL_NONE && (members & (1U << m))) {
            entry->values[m] = from ? from->values[m] : number;
        }
    }
}

void world_add_dep(struct world *world, int number, int on)
{
    struct model_entry *entry = &world->entries[number];
    const int is = world_resolve(world, on);
    const bool is_lost = is < 0 || (world->entries[is].state != MODEL_OPEN &&
                                    world->entries[is].state != MODEL_SENT);

    if (entry->dep_count == MODEL_DEPS) {
        abort();
    }
    entry->deps[entry->dep_count++] = (struct model_dep){.on = on, .is_waived = is_lost};
    entry->has_failed_with_chain = entry->has_failed_with_chain || is_lost;
    if (!is_lost && world->entries[is].state == MODEL_SENT) {
        fill(entry, NULL, is, world->entries[is].results);
    }
}

void world_confirm(struct world *world, int number, unsigned results)
{
    for (int i = 0; i < world->count; i++) {
        if (world_waits_for(world, i, number)) {
            fill(&world->entries[i], NULL, number, results);
        }
    }
    world->entries[number].state = MODEL_SENT;
    world->entries[number].results = results;
}

void world_answer(struct world *world, int number, unsigned results)
{
    for (int i = 0; i < world->count; i++) {
        struct model_entry *entry = &world->entries[i];

        for (int a = 0; a < entry->awaited_count; a++) {
            if (entry->awaited[a] == number) {
                entry->awaited[a--] = entry->awaited[--entry->awaited_count];
                fill(entry, NULL, number, results);
            }
        }
    }
}

static void fail_with_chain(struct world *world, int number)
{
    struct model_entry *entry = &world->entries[number];

    if (strcmp(entry->seen.status, "error") == 0 || entry->has_failed_with_chain) {
        return; /* it has failed for its own reason: what waits for it still waits */
    }
    entry->has_failed_with_chain = true;
    for (int i = 0; i < world->count; i++) {
        if (world_waits_for(world, i, number)) {
            fail_with_chain(world, i);
        }
    }
}

void world_discard(struct world *world, int number, bool gives)
{
    struct model_entry *gone = &world->entries[number];

    for (int i = 0; i < world->count; i++) {
        struct model_entry *entry = &world->entries[i];

        if (!world_waits_for(world, i, number)) {
            continue;
        }
        if (gives) {
            fill(entry, gone, number, ~0U);
        }
        for (int d = 0; d < entry->dep_count; d++) {
            entry->deps[d].is_waived =
                entry->deps[d].is_waived || world_resolve(world, entry->deps[d].on) == number;
        }
        fail_with_chain(world, i);
    }
    gone->state = MODEL_GONE;
}

void world_rearm(struct world *world, int number)
{
    world->entries[number].has_failed_with_chain = false;
    world->entries[number].conflict = MODEL_NONE;
}

void world_replace(struct world *world, int number, int by)
{
    struct model_entry *old = &world->entries[number];
    struct model_entry *entry = world_create(world, by, old->ws, old->lane, old->kind);

    memcpy(entry->deps, old->deps, sizeof(entry->deps));
    memcpy(entry->values, old->values, sizeof(entry->values));
    entry->dep_count = old->dep_count;
    entry->has_cmid = old->has_cmid;
    entry->part = old->part;
    entry->root = old->root;
    entry->version = old->version;
    entry->if_match = old->conflict;
    for (int i = 0; i < world->count; i++) {
        if (world_waits_for(world, i, number)) {
            const int64_t rank = world_rank(world, i);

            entry->rank_floor =
                entry->rank_floor == 0 || rank < entry->rank_floor ? rank : entry->rank_floor;
        }
    }
    old->state = MODEL_REPLACED;
    old->replaced_by = by;
}

int world_newest(const struct world *world, int number, int *ret_root)
{
    const struct model_entry *entry = &world->entries[number];
    const int above = entry->part != MODEL_PART_NONE ? world_resolve(world, entry->root) : number;
    const int root = world_is_open(world, above) ? above : number;
    int newest = root;

    for (int i = 0; i < world->count; i++) {
        const struct model_entry *other = &world->entries[i];

        if (other->state == MODEL_OPEN && other->part != MODEL_PART_NONE &&
            world_resolve(world, other->root) == root &&
            (newest == root || world_waits_for(world, i, newest) ||
             (!world_waits_for(world, newest, i) &&
              other->seen.accepted_ms >= world->entries[newest].seen.accepted_ms))) {
            newest = i;
        }
    }
    *ret_root = root;
    return newest;
}

/* What outboxd writes itself skips an entry that failed with its chain. */
static void add_bridged(struct world *world, int number, int on)
{
    const struct model_entry *entry = &world->entries[on];

    if (!entry->has_failed_with_chain) {
        if (!world_waits_for(world, number, on)) {
            world_add_dep(world, number, on);
        }
        return;
    }
    for (int i = 0; i < entry->dep_count; i++) {
        if (!entry->deps[i].is_waived &&
            world_is_open(world, world_resolve(world, entry->deps[i].on))) {
            add_bridged(world, number, world_resolve(world, entry->deps[i].on));
        }
    }
}

void world_follow_up(struct world *world, int number, int target, enum model_part part)
{
    int root;
    const int newest = world_newest(world, target, &root);
    const struct model_kind *kind = &model_kinds[world->entries[root].kind];
    const int content = world_is_open(world, target) ? newest : target;
    struct model_entry *entry =
        world_create(world, number, world->entries[target].ws, world->entries[target].lane,
                     part == MODEL_PART_EDIT ? kind->edit : kind->remove);

    entry->part = part;
    entry->root = root;
    entry->version = world->entries[content].version;
    memcpy(entry->values, world->entries[content].values, sizeof(entry->values));
    if (world->entries[root].state == MODEL_OPEN) {
        add_bridged(world, number, newest);
    }
}
