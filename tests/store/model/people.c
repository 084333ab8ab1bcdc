#include "tests/store/model/people.h"

#include <string.h>

static bool has_failed(const struct model_entry *entry)
{
    return strcmp(entry->seen.status, "error") == 0;
}

static bool is_busy(const struct model_entry *entry)
{
    return entry->seen.is_staged || strcmp(entry->seen.status, "delivering") == 0;
}

/* The only entries whose payload may change (contract §6). */
static bool may_change(const struct model_entry *entry)
{
    return entry->state == MODEL_OPEN && entry->seen.sends == 0 && !is_busy(entry);
}

struct person {
    struct world *world;
    const struct operation *operation;
    int target; /* what the entry named has become */
    struct model_entry *entry;
    struct sync_operated done;
    int subject;
};

static const char *const results[] = {
    [OPERATE_DONE] = "done",
    [OPERATE_NOT_FOUND] = "not found",
    [OPERATE_ENDED] = "ended",
    [OPERATE_BUSY] = "busy",
    [OPERATE_NOT_FAILED] = "not failed",
    [OPERATE_ALREADY_SENT] = "already sent",
    [OPERATE_BAD_PATCH] = "bad patch",
    [OPERATE_TOO_MANY] = "too many",
    [OPERATE_CONTENDED] = "contended",
};

static void must(const struct person *person, bool is_right, const char *what)
{
    if (!is_right) {
        world_fail(person->world, "%s of e%d (%s): %s, %s, %s", what, person->target,
                   person->entry->seen.status, results[person->done.result],
                   person->done.result == OPERATE_DONE ? resolver_what_name(person->done.what) : "",
                   person->done.subject);
    }
}

/* False: the answer is a refusal, or there is nobody to ask about. */
static bool ask(struct person *person, struct world *world, const struct operation *operation,
                enum resolver_operation what, const char *patch)
{
    char id[16], new_id[16];

    if (operation->entry < 0 || world->entries[operation->entry].state == MODEL_UNUSED) {
        return false;
    }
    *person = (struct person){.world = world, .operation = operation};
    person->target = world_resolve(world, operation->entry);
    person->entry = &world->entries[person->target];
    person->done =
        sync_operate(world->s, world->settings, what, world->workspaces[person->entry->ws],
                     world_id(operation->entry, id), world_id(operation->number, new_id), patch);
    person->subject = world_number(world, person->done.subject);

    const bool is_open = person->entry->state == MODEL_OPEN;

    switch (person->done.result) {
    case OPERATE_DONE:
        must(person, is_open, "an operation");
        return is_open;
    case OPERATE_ENDED:
        must(person, !is_open, "an operation");
        break;
    case OPERATE_BUSY:
        must(person, is_open && is_busy(person->entry), "an operation");
        break;
    case OPERATE_NOT_FAILED:
        must(person, is_open && !has_failed(person->entry), "a retry");
        break;
    case OPERATE_ALREADY_SENT:
        must(person, is_open && !may_change(person->entry), "an edit");
        break;
    case OPERATE_NOT_FOUND:
    case OPERATE_BAD_PATCH:
    case OPERATE_TOO_MANY:
    case OPERATE_CONTENDED:
        must(person, false, "an operation");
        break;
    }
    return false;
}

static bool is_created(const struct person *person)
{
    return person->subject == person->operation->number;
}

bool perform_retry(struct world *world, const struct operation *operation)
{
    struct person person;

    if (!ask(&person, world, operation, RESOLVER_RETRY, "")) {
        return operation->entry >= 0;
    }
    must(&person, has_failed(person.entry) && !is_busy(person.entry), "a retry");
    if (model_kinds[person.entry->kind].is_idempotent) {
        must(&person, person.done.what == RESOLVER_REPLACED && is_created(&person), "a retry");
        world_replace(world, person.target, operation->number);
    } else {
        must(&person, person.done.what == RESOLVER_RETRIED && person.subject == person.target,
             "a retry");
        world_rearm(world, person.target);
    }
    return true;
}

/* ---- edits ---- */

static bool names_member(const struct operation *operation)
{
    return operation->x % 4 == 0;
}

static void change(const struct person *person, int number)
{
    struct model_entry *entry = &person->world->entries[number];

    entry->version = person->operation->number;
    if (names_member(person->operation)) {
        entry->values[0] = person->operation->number;
    }
}

/* Edits of it that were never sent are in the replacement: the newest one's payload. */
static void replace_edited(const struct person *person)
{
    struct world *world = person->world;
    const int by = person->operation->number;
    int newest = MODEL_NONE;

    for (int i = 0; i < world->count; i++) {
        struct model_entry *other = &world->entries[i];

        if (i != person->target && other->part == MODEL_PART_EDIT && may_change(other) &&
            world_resolve(world, other->root) == person->target &&
            (newest < 0 || world_waits_for(world, i, newest) ||
             (!world_waits_for(world, newest, i) &&
              other->seen.accepted_ms >= world->entries[newest].seen.accepted_ms))) {
            newest = i;
        }
    }
    const struct model_entry content = world->entries[newest < 0 ? person->target : newest];
    const int old = person->target;

    world_replace(world, old, by);
    for (int i = 0; i < world->count; i++) {
        struct model_entry *other = &world->entries[i];

        if (i != by && other->part == MODEL_PART_EDIT && may_change(other) && other->root >= 0 &&
            world_resolve(world, other->root) == by) {
            other->state = MODEL_REPLACED;
            other->replaced_by = by;
        }
    }
    world->entries[by].version = content.version;
    memcpy(world->entries[by].values, content.values, sizeof(content.values));
}

bool perform_edit(struct world *world, const struct operation *operation)
{
    struct person person;
    char patch[64];

    snprintf(patch, sizeof(patch), "{\"v\":%d}", operation->number);
    if (names_member(operation)) {
        snprintf(patch, sizeof(patch), "{\"v\":%d,\"a\":\"r%d\"}", operation->number,
                 operation->number);
    }
    if (!ask(&person, world, operation, RESOLVER_EDIT, patch)) {
        return operation->entry >= 0;
    }
    switch (person.done.what) {
    case RESOLVER_EDITED:
        must(&person, person.subject == person.target && may_change(person.entry), "an edit");
        world_rearm(world, person.target);
        break;
    case RESOLVER_REPLACED:
        must(&person,
             is_created(&person) && has_failed(person.entry) && !is_busy(person.entry) &&
                 model_kinds[person.entry->kind].is_idempotent,
             "an edit");
        replace_edited(&person);
        break;
    case RESOLVER_FOLLOW_UP:
        must(&person, !may_change(person.entry), "an edit");
        if (is_created(&person)) {
            world_follow_up(world, person.subject, person.target, MODEL_PART_EDIT);
        } else {
            must(&person, person.subject >= 0 && may_change(&world->entries[person.subject]),
                 "a second edit");
        }
        break;
    case RESOLVER_RETRIED:
    case RESOLVER_REMOVED:
    case RESOLVER_DISCARDED:
        must(&person, false, "an edit");
        break;
    }
    if (person.subject >= 0) {
        change(&person, person.subject);
    }
    return true;
}

/* ---- removals ---- */

/* All but what the target has refused for good. */
static bool may_be_stored(const struct model_entry *entry)
{
    static const char *const codes[] = {"outcome_unknown", "unverifiable", "retries_exhausted",
                                        "attempts_exhausted"};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (strcmp(entry->seen.code, codes[i]) == 0) {
            return entry->seen.sends > 0;
        }
    }
    return false;
}

bool perform_remove(struct world *world, const struct operation *operation)
{
    struct person person;

    if (!ask(&person, world, operation, RESOLVER_REMOVE, "")) {
        return operation->entry >= 0;
    }
    switch (person.done.what) {
    case RESOLVER_REMOVED:
        must(&person, !has_failed(person.entry) && !is_busy(person.entry), "a removal");
        world_discard(world, person.target, false);
        break;
    case RESOLVER_DISCARDED: {
        const bool is_followed =
            may_be_stored(person.entry) && model_kinds[person.entry->kind].remove != MODEL_NONE;

        must(&person, has_failed(person.entry), "a removal");
        world_discard(world, person.target, true);
        if (is_followed) {
            world_follow_up(world, operation->number, person.target, MODEL_PART_REMOVE);
        }
        break;
    }
    case RESOLVER_FOLLOW_UP:
        must(&person, !may_change(person.entry), "a removal");
        if (is_created(&person)) {
            world_follow_up(world, person.subject, person.target, MODEL_PART_REMOVE);
        }
        break;
    case RESOLVER_RETRIED:
    case RESOLVER_REPLACED:
    case RESOLVER_EDITED:
        must(&person, false, "a removal");
        break;
    }
    return true;
}
