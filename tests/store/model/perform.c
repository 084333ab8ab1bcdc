/* The operations that are neither a worker's nor about one entry, and the table of all. */
#include <string.h>

#include "tests/store/model/claims.h"
#include "tests/store/model/people.h"

#define CAP        12
#define AN_HOUR_MS 3600000

static bool perform_accept(struct world *world, const struct operation *operation)
{
    const unsigned nulls = operation_null_members(operation);
    const int lane = operation_lane(operation), kind = operation_kind(operation);
    char id[16], cmid[16], payload[96], members[MODEL_MEMBERS][16], deps[3][16];

    snprintf(cmid, sizeof(cmid), "m%d", operation->number);
    if (!operation_has_cmid(operation)) {
        cmid[0] = '\0';
    }
    for (int m = 0; m < MODEL_MEMBERS; m++) {
        snprintf(members[m], sizeof(members[m]), "\"r%d\"", operation->number);
        if (nulls & (1U << m)) {
            snprintf(members[m], sizeof(members[m]), "null");
        }
    }
    snprintf(payload, sizeof(payload), "{\"v\":%d,\"a\":%s,\"b\":%s}", operation->number,
             members[0], members[1]);
    struct sync_entry request = {
        .ws = world->workspaces[operation->ws],
        .session = model_lanes[lane],
        .id = world_id(operation->number, id),
        .cmid = cmid,
        .kind = model_kinds[kind].name,
        .payload = payload,
        .cap = CAP,
        .by_many = operation->number % 2 == 1,
    };

    for (int i = 0; i < operation->dep_count; i++) {
        const int dep = operation->deps[i];

        if (dep >= 0 && world->entries[dep].state == MODEL_UNUSED) {
            return false; /* what made it was left out */
        }
        request.depends_on[request.dep_count++] = world_id(dep, deps[i]);
    }
    const enum accept_result result = sync_accept_entry(world->s, world->settings, &request, NULL);

    if (result == ACCEPT_SESSION_FULL) {
        return true;
    }
    if (result != ACCEPT_ACCEPTED) {
        world_fail(world, "%s was not accepted", id);
        return true;
    }
    struct model_entry *entry = world_create(world, operation->number, operation->ws, lane, kind);

    entry->has_cmid = cmid[0] != '\0';
    for (int m = 0; m < MODEL_MEMBERS; m++) {
        entry->values[m] = nulls & (1U << m) ? MODEL_NONE : operation->number;
    }
    for (int i = 0; i < operation->dep_count; i++) {
        world_add_dep(world, operation->number, operation->deps[i]);
    }
    return true;
}

/* The same message once more: it is known, by what it has become. */
static bool perform_again(struct world *world, const struct operation *operation)
{
    const int number = operation->entry;
    const struct model_entry *entry = number >= 0 ? &world->entries[number] : NULL;
    char id[16], cmid[16], first[64], expected[16];

    if (!entry || entry->state == MODEL_UNUSED || !entry->has_cmid) {
        return false;
    }
    int original = number; /* its clientMessageID is known by the first of its replacements */

    for (int i = 0; i < world->count; i++) {
        if (world->entries[i].state == MODEL_REPLACED &&
            world->entries[i].replaced_by == original && world->entries[i].has_cmid) {
            original = i;
            i = -1;
        }
    }
    snprintf(cmid, sizeof(cmid), "m%d", original);
    const struct sync_entry request = {
        .ws = world->workspaces[entry->ws],
        .session = model_lanes[entry->lane],
        .id = world_id(operation->number, id),
        .cmid = cmid,
        .kind = model_kinds[entry->kind].name,
        .payload = "{}",
        .cap = CAP,
    };

    if (sync_accept_entry(world->s, world->settings, &request, first) != ACCEPT_DUPLICATE ||
        strcmp(first, world_id(world_resolve(world, number), expected)) != 0) {
        world_fail(world, "%s is answered with %s, not with %s", cmid, first, expected);
    }
    return true;
}

static bool perform_echo(struct world *world, const struct operation *operation)
{
    char id[16], room[64];
    const unsigned members = operation->x % 4;
    const int number = operation->entry >= 0 ? world_resolve(world, operation->entry) : MODEL_NONE;

    if (number < 0 || world->entries[number].state == MODEL_UNUSED) {
        return false;
    }
    struct model_entry *entry = &world->entries[number];
    const bool was_open = entry->state == MODEL_OPEN;
    const struct confirm_answer answer =
        sync_confirm(world->s, world->workspaces[entry->ws], world_id(operation->entry, id), "", "",
                     model_result(number, members, room), AN_HOUR_MS);

    if (answer.is_new != was_open ||
        answer.is_confirmed != (was_open || entry->state == MODEL_SENT)) {
        world_fail(world, "an echo of e%d: confirmed %d, new %d", number, answer.is_confirmed,
                   answer.is_new);
    }
    for (int i = 0; i < world->count && was_open && members == 0 && entry->seen.is_staged; i++) {
        struct model_entry *other = &world->entries[i];

        if (world_waits_for(world, i, number) && other->awaited_count < MODEL_DEPS &&
            (other->values[0] == MODEL_NONE || other->values[1] == MODEL_NONE)) {
            other->awaited[other->awaited_count++] = number;
        }
    }
    if (was_open) {
        world_confirm(world, number, members);
    }
    return true;
}

static bool perform_park(struct world *world, const struct operation *operation)
{
    sync_walk(world->s, WALK_PARK, world->workspaces[operation->ws], operation->x % 4);
    return true;
}

static bool perform_unpark(struct world *world, const struct operation *operation)
{
    sync_walk(world->s, WALK_UNPARK, world->workspaces[operation->ws], operation->x % 4);
    return true;
}

static bool perform_pause(struct world *world, const struct operation *operation)
{
    sync_pause(world->s, world->workspaces[operation->ws], true);
    world->is_paused[operation->ws] = true;
    return true;
}

static bool perform_resume(struct world *world, const struct operation *operation)
{
    sync_pause(world->s, world->workspaces[operation->ws], false);
    world->is_paused[operation->ws] = false;
    return true;
}

/* Every wait (an hour each, in this test) is over: of entries, so of their sessions and workspaces.
 * Locks stay. */
static const char *const time_passes =
    "#!lua flags=allow-cross-slot-keys\n"
    "local call = redis.call\n"
    "local t = call('TIME')\n"
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "for _, k in ipairs(call('KEYS', 'outboxawait:*')) do call('DEL', k) end\n"
    "for _, k in ipairs(call('KEYS', 'outboxe:*')) do\n"
    "  if tonumber(call('HGET', k, 'nextAttemptAt') or '0') > now then\n"
    "    call('HSET', k, 'nextAttemptAt', now)\n"
    "  end\n"
    "end\n"
    "for _, k in ipairs(call('KEYS', 'outboxws:*')) do\n"
    "  local p, ws = k:match('^outboxws:{(%d+)}:(.+)$')\n"
    "  local all = call('ZRANGE', k, 0, -1, 'WITHSCORES')\n"
    "  for i = 1, #all, 2 do\n"
    "    local at = tonumber(all[i + 1])\n"
    "    local lock = 'outboxlock:{' .. p .. '}:' .. ws .. ':' .. all[i]\n"
    "    if at > now and at < math.huge and call('EXISTS', lock) == 0 then\n"
    "      call('ZADD', k, now, all[i])\n"
    "    end\n"
    "  end\n"
    "  local first = tonumber(call('ZRANGE', k, 0, 0, 'WITHSCORES')[2])\n"
    "  local due = tonumber(call('ZSCORE', 'outboxdue:{' .. p .. '}', ws))\n"
    "  if due > now and due < math.huge and first <= now then\n"
    "    call('ZADD', 'outboxdue:{' .. p .. '}', now, ws)\n"
    "  end\n"
    "end\n"
    "return ''\n";

static bool perform_time(struct world *world, const struct operation *operation)
{
    (void)operation;
    sync_script(world->s, time_passes);
    for (int i = 0; i < world->count; i++) {
        world->entries[i].awaited_count = 0;
    }
    return true;
}

bool operation_perform(struct world *world, const struct operation *operation)
{
    static bool (*const performs[OPERATION_COUNT])(struct world *, const struct operation *) = {
        [OPERATION_ACCEPT] = perform_accept,   [OPERATION_AGAIN] = perform_again,
        [OPERATION_CLAIM] = perform_claim,     [OPERATION_BEGIN] = perform_begin,
        [OPERATION_FINISH] = perform_finish,   [OPERATION_SETTLE] = perform_settle,
        [OPERATION_RELEASE] = perform_release, [OPERATION_STALE] = perform_stale,
        [OPERATION_ECHO] = perform_echo,       [OPERATION_RETRY] = perform_retry,
        [OPERATION_EDIT] = perform_edit,       [OPERATION_REMOVE] = perform_remove,
        [OPERATION_PARK] = perform_park,       [OPERATION_UNPARK] = perform_unpark,
        [OPERATION_PAUSE] = perform_pause,     [OPERATION_RESUME] = perform_resume,
        [OPERATION_TIME] = perform_time,       [OPERATION_DEATH] = perform_death,
    };

    return performs[operation->type](world, operation);
}
