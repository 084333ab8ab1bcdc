/* Which operation comes next: drawn by weight, about an entry or a claim that is there. */
#include "tests/store/model/operation.h"

static unsigned draw(uint64_t *rng, unsigned below)
{
    *rng ^= *rng << 13;
    *rng ^= *rng >> 7;
    *rng ^= *rng << 17;
    return (unsigned)((*rng >> 11) % below);
}

typedef bool is_wanted(const struct model_entry *entry);

static bool is_used(const struct model_entry *entry)
{
    return entry->state != MODEL_UNUSED;
}

static bool is_open(const struct model_entry *entry)
{
    return entry->state == MODEL_OPEN;
}

static bool has_failed(const struct model_entry *entry)
{
    return entry->state == MODEL_OPEN && entry->seen.status[0] == 'e';
}

static bool has_claim(const struct model_entry *entry)
{
    return entry->has_claim;
}

static bool has_old_claim(const struct model_entry *entry)
{
    return entry->has_old;
}

static bool is_looked_up(const struct model_entry *entry)
{
    return entry->has_claim && entry->claim.mode == CLAIM_VERIFY;
}

/* One of them, of any workspace or of that one. */
static int pick(const struct world *world, uint64_t *rng, is_wanted *wanted, int ws)
{
    unsigned count = 0;

    for (int i = 0; i < world->count; i++) {
        count += wanted(&world->entries[i]) && (ws < 0 || world->entries[i].ws == ws);
    }
    unsigned left = count > 0 ? draw(rng, count) : 0;

    for (int i = 0; i < world->count && count > 0; i++) {
        if (wanted(&world->entries[i]) && (ws < 0 || world->entries[i].ws == ws) && left-- == 0) {
            return i;
        }
    }
    return MODEL_NONE;
}

static int subject(const struct world *world, enum operation_type type, uint64_t *rng)
{
    switch (type) {
    case OPERATION_FINISH:
    case OPERATION_SETTLE:
    case OPERATION_RELEASE:
    case OPERATION_DEATH:
        return pick(world, rng, has_claim, -1);
    case OPERATION_BEGIN:
        return pick(world, rng, is_looked_up, -1);
    case OPERATION_STALE:
        return pick(world, rng, has_old_claim, -1);
    case OPERATION_RETRY:
        return pick(world, rng, draw(rng, 5) ? has_failed : is_used, -1);
    case OPERATION_ECHO:
        return pick(world, rng, draw(rng, 3) ? has_claim : is_used, -1);
    case OPERATION_AGAIN:
    case OPERATION_EDIT:
    case OPERATION_REMOVE:
        return pick(world, rng, draw(rng, 6) ? is_open : is_used, -1);
    case OPERATION_ACCEPT:
    case OPERATION_CLAIM:
    case OPERATION_PARK:
    case OPERATION_UNPARK:
    case OPERATION_PAUSE:
    case OPERATION_RESUME:
    case OPERATION_TIME:
    case OPERATION_COUNT:
        break;
    }
    return MODEL_NONE;
}

struct operation operation_draw(const struct world *world, int number, uint64_t *rng)
{
    struct operation operation = {.number = number, .ws = (int)draw(rng, MODEL_WORKSPACES)};
    unsigned total = 0;

    for (int i = 0; i < OPERATION_COUNT; i++) {
        total += operation_weights[i];
    }
    unsigned left = draw(rng, total);

    while (left >= operation_weights[operation.type]) {
        left -= operation_weights[operation.type++];
    }
    operation.x = draw(rng, 1U << 20);
    operation.entry = subject(world, operation.type, rng);
    if (operation.type == OPERATION_ACCEPT && draw(rng, 3) != 0) {
        operation.dep_count = 1 + (int)draw(rng, 3);
        for (int i = 0; i < operation.dep_count; i++) {
            operation.deps[i] =
                draw(rng, 40) == 0
                    ? MODEL_NONE
                    : pick(world, rng, draw(rng, 8) ? is_open : is_used, operation.ws);
        }
        while (operation.dep_count > 0 && operation.deps[0] == MODEL_NONE && draw(rng, 20)) {
            operation.deps[0] = operation.deps[--operation.dep_count];
        }
    }
    return operation;
}
