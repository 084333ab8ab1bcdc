/* What holds after every step. */
#include <string.h>

#include "tests/store/model/view.h"

static bool is_status(const struct model_entry *entry, const char *status)
{
    return strcmp(entry->seen.status, status) == 0;
}

/* Nothing is lost, nothing comes back, and what is confirmed is said once. */
static void check_presence(struct world *world, int number)
{
    const struct model_entry *entry = &world->entries[number];

    if (entry->seen.is_there != (entry->state == MODEL_OPEN)) {
        world_fail(world, "e%d is %s", number,
                   entry->seen.is_there ? "stored, and has ended" : "open, and not stored");
    }
    if (entry->sent_events != (entry->state == MODEL_SENT)) {
        world_fail(world, "e%d has %u sent events", number, entry->sent_events);
    }
}

static void check_failure(struct world *world, int number)
{
    const struct model_entry *entry = &world->entries[number];
    const bool says_so =
        is_status(entry, "error") && strcmp(entry->seen.code, "dependency_discarded") == 0;

    if (entry->has_failed_with_chain != says_so) {
        world_fail(world, "e%d is %s %s, but what it waits for %s", number, entry->seen.status,
                   entry->seen.code,
                   entry->has_failed_with_chain ? "was discarded" : "was not discarded");
    }
}

static void check_revision(struct world *world, int number)
{
    const struct model_entry *entry = &world->entries[number];
    char expected[16] = "";

    if (entry->if_match != MODEL_NONE) {
        snprintf(expected, sizeof(expected), "c%d", entry->if_match);
    }
    if (strcmp(expected, entry->seen.if_match) != 0) {
        world_fail(world, "e%d has If-Match %s, not %s", number, entry->seen.if_match, expected);
    }
}

/* Nobody changes what is being sent or verified. */
static void check_content(struct world *world, int number)
{
    struct model_entry *entry = &world->entries[number];

    if (!entry->has_claim || !entry->seen.is_staged) {
        return;
    }
    if (entry->claimed_content[0] == '\0') {
        memcpy(entry->claimed_content, entry->seen.content, sizeof(entry->claimed_content));
    } else if (strcmp(entry->claimed_content, entry->seen.content) != 0) {
        world_fail(world, "e%d is being sent, and was changed", number);
    }
}

/* It could have gone, too, and was never in anything's way. */
static bool never_waited(const struct model_entry *entry)
{
    return is_status(entry, "pending") && entry->seen.sends == 0 && entry->dep_count == 0 &&
           !entry->was_parked && !entry->has_claim && !entry->has_old;
}

/* Contract §6: by the oldest acceptance among an entry and all that waits for it. */
static void check_order(struct world *world, int number)
{
    const struct model_entry *entry = &world->entries[number];
    const int64_t rank = world_rank(world, number);

    for (int i = 0; i < world->count; i++) {
        const struct model_entry *other = &world->entries[i];

        if (i == number || other->state != MODEL_OPEN || other->ws != entry->ws ||
            other->lane != entry->lane || is_status(other, "error")) {
            continue;
        }
        if ((model_lane_is_strict(entry->lane) ||
             (never_waited(other) && entry->seen.sends == 1 && entry->dep_count == 0)) &&
            world_rank(world, i) < rank) {
            world_fail(world, "e%d is taken before e%d of its lane", number, i);
        }
    }
}

void check_view(struct world *world)
{
    for (int i = 0; i < world->count; i++) {
        struct model_entry *entry = &world->entries[i];

        check_presence(world, i);
        if (entry->state == MODEL_OPEN) {
            entry->was_parked = entry->was_parked || is_status(entry, "parked");
            check_failure(world, i);
            check_revision(world, i);
            check_content(world, i);
        }
    }
    for (int i = 0; i < world->count; i++) {
        if (world->entries[i].is_claim_new && world->entries[i].state == MODEL_OPEN) {
            check_order(world, i);
        }
        world->entries[i].is_claim_new = false;
    }
}

void check_store(struct world *world)
{
    char why[400];

    if (!sync_invariants_hold(world->s, why, sizeof(why))) {
        world_fail(world, "%s", why);
    }
    for (int i = 0; i < MODEL_WORKSPACES; i++) {
        const uint32_t mended = sync_audit(world->s, world->workspaces[i]);

        if (mended > 0) {
            world_fail(world, "claims would not have found all of workspace %d", i);
        }
    }
}
