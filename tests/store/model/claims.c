#include "tests/store/model/claims.h"

#include <jansson.h>
#include <string.h>

const char *model_result(int number, unsigned members, char room[64])
{
    room[0] = '\0';
    if (members == 1 || members == 2) {
        snprintf(room, 64, "{\"%c\":\"r%d\"}", members == 1 ? 'a' : 'b', number);
    } else if (members == 3) {
        snprintf(room, 64, "{\"a\":\"r%d\",\"b\":\"r%d\"}", number, number);
    }
    return room;
}

/* ---- what is sent ---- */

static void check_member(struct world *world, int number, const json_t *payload, int member)
{
    const char name[2] = {(char)('a' + member), '\0'};
    const char *text = json_string_value(json_object_get(payload, name));
    const int value = text && text[0] == 'r' ? (int)strtol(text + 1, NULL, 10) : MODEL_NONE;
    const int known = world->entries[number].values[member];

    if (value != known) {
        world_fail(world, "e%d is sent with member %s of e%d, not of e%d", number, name, value,
                   known);
    }
}

static void check_payload(struct world *world, int number, const char *text)
{
    json_t *payload = json_loads(text, 0, NULL);
    const json_t *version = json_object_get(payload, "v");

    if (json_integer_value(version) != world->entries[number].version) {
        world_fail(world, "e%d is sent as %s, its newest version is %d", number, text,
                   world->entries[number].version);
    }
    for (int m = 0; m < MODEL_MEMBERS; m++) {
        check_member(world, number, payload, m);
    }
    json_decref(payload);
}

static void check_send(struct world *world, int number, const struct taken *taken)
{
    const struct model_entry *entry = &world->entries[number];

    if (entry->has_failed_with_chain) {
        world_fail(world, "e%d is sent, but what it waits for was discarded", number);
    }
    for (int i = 0; i < entry->dep_count; i++) {
        const int dep = world_resolve(world, entry->deps[i].on);

        if (!entry->deps[i].is_waived && world->entries[dep].state != MODEL_SENT) {
            world_fail(world, "e%d is sent before e%d, which it waits for, was confirmed", number,
                       dep);
        }
    }
    for (int m = 0; m < MODEL_MEMBERS && taken->sends == 1; m++) {
        if (entry->values[m] == MODEL_NONE && entry->awaited_count > 0) {
            world_fail(world, "e%d is sent before the answer of e%d, which fills it, came", number,
                       entry->awaited[0]);
        }
    }
    check_payload(world, number, taken->payload);
}

/* ---- claims ---- */

static void give_up(struct model_entry *entry)
{
    if (entry->has_claim) {
        entry->has_claim = false;
        entry->has_old = true;
        entry->old = entry->claim;
    }
}

static void note_claim(struct world *world, const struct taken *taken)
{
    const int number = world_number(world, taken->id);

    if (!world_is_open(world, number)) {
        world_fail(world, "%s is claimed and is not open", taken->id);
        return;
    }
    struct model_entry *entry = &world->entries[number];
    /* A late repeat of a call is told of the claim that its first run took. */
    const bool is_told_again = entry->has_claim && entry->claim.sends == taken->sends &&
                               strcmp(entry->claim.token.text, taken->token.text) == 0;

    give_up(entry);
    entry->claim = *taken;
    entry->has_claim = true;
    entry->is_claim_new = entry->is_claim_new || !is_told_again;
    entry->claimed_content[0] = '\0';
    if (world->is_paused[entry->ws]) {
        world_fail(world, "%s is claimed, but its workspace is paused", taken->id);
    }
    if (taken->mode == CLAIM_SEND) {
        check_send(world, number, taken);
    }
}

static void note_next(struct world *world, const struct outcome_copy *outcome)
{
    if (outcome->has_next) {
        note_claim(world, &outcome->next);
    }
}

bool perform_claim(struct world *world, const struct operation *operation)
{
    char token[48];

    snprintf(token, sizeof(token), "node.1.4.a.%x", (unsigned)operation->number + 1);
    struct taken_list list = sync_claim(world->s, world->workspaces[operation->ws], token,
                                        1 + operation->x % 4, 1 + operation->x / 4 % 3, NULL, 0);

    for (size_t i = 0; i < list.count; i++) {
        note_claim(world, &list.items[i]);
    }
    return true;
}

bool perform_begin(struct world *world, const struct operation *operation)
{
    struct model_entry *entry = operation->entry >= 0 ? &world->entries[operation->entry] : NULL;

    if (!entry || !entry->has_claim || entry->claim.mode != CLAIM_VERIFY) {
        return false;
    }
    const struct begin_send_answer begun = sync_begin_send(world->s, &entry->claim);

    if (!begun.applied) {
        give_up(entry);
        return true;
    }
    if (entry->state != MODEL_OPEN || strcmp(entry->seen.status, "parked") == 0) {
        world_fail(world, "e%d is sent and was %s", operation->entry, entry->seen.status);
        return true;
    }
    entry->claim.mode = CLAIM_SEND;
    entry->claim.status = STATUS_DELIVERING;
    entry->claim.sends = begun.sends;
    check_send(world, operation->entry, &entry->claim);
    return true;
}

/* ---- outcomes ---- */

static void finish(struct world *world, const struct operation *operation,
                   const struct taken *claim)
{
    char room[64];
    const unsigned members = operation->x % 4;
    const bool was_open = world_is_open(world, operation->entry);
    const struct outcome_copy outcome = sync_finish_with(
        world->s, claim, model_result(operation->entry, members, room), operation->x / 4 % 2);

    if (outcome.applied != was_open) {
        world_fail(world, "e%d was %s, its confirmation %s", operation->entry,
                   was_open ? "open" : "not open", outcome.applied ? "counted" : "did not count");
    }
    if (was_open) {
        world_confirm(world, operation->entry, members);
    } else {
        world_answer(world, operation->entry, members);
    }
    note_next(world, &outcome);
}

bool perform_finish(struct world *world, const struct operation *operation)
{
    struct model_entry *entry = operation->entry >= 0 ? &world->entries[operation->entry] : NULL;

    if (!entry || !entry->has_claim) {
        return false;
    }
    give_up(entry);
    finish(world, operation, &entry->old);
    return true;
}

static enum outcome outcome_of(const struct taken *claim, bool is_idempotent, unsigned x)
{
    static const enum outcome idempotent[] = {OUTCOME_RETRY, OUTCOME_RETRY, OUTCOME_FAILED,
                                              OUTCOME_CONFLICT, OUTCOME_TRANSIENT};
    static const enum outcome other[] = {OUTCOME_AMBIGUOUS,    OUTCOME_REJECTED, OUTCOME_FAILED,
                                         OUTCOME_CONFLICT,     OUTCOME_UNKNOWN,  OUTCOME_TRANSIENT,
                                         OUTCOME_PRIOR_PENDING};
    static const enum outcome verifying[] = {OUTCOME_ABSENT, OUTCOME_INCONCLUSIVE,
                                             OUTCOME_TOO_EARLY, OUTCOME_UNKNOWN};
    static const enum outcome before[] = {OUTCOME_INCONCLUSIVE, OUTCOME_TOO_EARLY,
                                          OUTCOME_TRANSIENT, OUTCOME_FAILED};

    if (claim->status == STATUS_DELIVERING) {
        return is_idempotent ? idempotent[x % 5] : other[x % 7];
    }
    return claim->status == STATUS_VERIFYING ? verifying[x % 4] : before[x % 4];
}

static void settle(struct world *world, const struct operation *operation,
                   const struct taken *claim)
{
    struct model_entry *entry = &world->entries[operation->entry];
    const enum outcome outcome =
        outcome_of(claim, model_kinds[entry->kind].is_idempotent, operation->x / 2);
    char current[64] = "";

    if (outcome == OUTCOME_CONFLICT) {
        snprintf(current, sizeof(current), "{\"version\":\"c%d\"}", operation->number);
    }
    const struct outcome_copy settled =
        sync_settle_with(world->s, claim, outcome, current, operation->x % 2);

    if (settled.applied && !world_is_open(world, operation->entry)) {
        world_fail(world, "e%d has ended, an outcome changed it", operation->entry);
    }
    if (settled.applied && outcome == OUTCOME_CONFLICT) {
        entry->conflict = operation->number;
    }
    if (entry->state != MODEL_OPEN) {
        world_answer(world, operation->entry, 0); /* there is none */
    }
    note_next(world, &settled);
}

bool perform_settle(struct world *world, const struct operation *operation)
{
    struct model_entry *entry = operation->entry >= 0 ? &world->entries[operation->entry] : NULL;

    if (!entry || !entry->has_claim) {
        return false;
    }
    give_up(entry);
    settle(world, operation, &entry->old);
    return true;
}

bool perform_release(struct world *world, const struct operation *operation)
{
    struct model_entry *entry = operation->entry >= 0 ? &world->entries[operation->entry] : NULL;

    if (!entry || !entry->has_claim) {
        return false;
    }
    give_up(entry);
    sync_release(world->s, &entry->old);
    if (entry->state != MODEL_OPEN) {
        world_answer(world, operation->entry, 0); /* nothing was sent: there is none */
    }
    return true;
}

/* Somebody who has lost his claim, or said so before, speaks up. */
bool perform_stale(struct world *world, const struct operation *operation)
{
    struct model_entry *entry = operation->entry >= 0 ? &world->entries[operation->entry] : NULL;

    if (!entry || !entry->has_old) {
        return false;
    }
    const struct taken old = entry->old;

    if (operation->x / 1024 % 2) {
        finish(world, operation, &old);
    } else {
        settle(world, operation, &old);
    }
    return true;
}

bool perform_death(struct world *world, const struct operation *operation)
{
    struct model_entry *entry = operation->entry >= 0 ? &world->entries[operation->entry] : NULL;

    if (!entry || !entry->has_claim) {
        return false;
    }
    give_up(entry);
    sync_recover(world->s, entry->old.workspace, entry->old.session, entry->old.token.text);
    return true;
}
