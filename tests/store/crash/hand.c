/* Calls of clients, people and the supervisor; workers' are in hand_worker.c. */
#include "tests/store/crash/hand.h"

#include <stdio.h>
#include <string.h>

#include "tests/store/crash/hand_repeat.h"

static void make_id(struct hand *hand, char ret[JOURNAL_ID])
{
    snprintf(ret, JOURNAL_ID, "n%c%u", hand->name, ++hand->made);
}

bool hand_accept(struct hand *hand, const struct message *message)
{
    char id[JOURNAL_ID], named[64];

    do {
        if (message->id[0] != '\0') {
            snprintf(id, sizeof(id), "%s", message->id);
        } else {
            make_id(hand, id);
        }
        const struct sync_entry entry = {
            .ws = CRASH_WORKSPACE,
            .session = message->session,
            .id = id,
            .cmid = message->cmid,
            .kind = message->kind,
            .payload = message->payload,
            .depends_on = {message->waits_for},
            .dep_count = message->waits_for[0] != '\0',
            .cap = 25,
        };

        journal_means(hand->journal, id, message->cmid, message->waits_for);
        const enum accept_result result = sync_accept_entry(hand->s, hand->settings, &entry, named);

        if (hand->look) {
            hand->look(hand);
        }
        if (was_answered(hand) && (result == ACCEPT_ACCEPTED || result == ACCEPT_DUPLICATE)) {
            journal_acknowledge(hand->journal, named);
        }
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_operate(struct hand *hand, enum resolver_operation operation, const char *id,
                  const char *patch)
{
    char new_id[JOURNAL_ID];

    do {
        make_id(hand, new_id);
        sync_operate(hand->s, hand->settings, operation, CRASH_WORKSPACE, id, new_id, patch);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_echo(struct hand *hand, const char *id, const char *session, const char *cmid,
               const char *result)
{
    do {
        sync_confirm(hand->s, CRASH_WORKSPACE, id, session, cmid, result, AN_HOUR_MS);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_walk(struct hand *hand, enum walk_kind kind)
{
    if (kind == WALK_CLEANUP) {
        journal_cleanup_begins(hand->journal);
    }
    do {
        sync_walk(hand->s, kind, CRASH_WORKSPACE, 1);
    } while (must_repeat(hand));
    if (kind == WALK_CLEANUP && !hand->is_dead) {
        journal_cleanup_ends(hand->journal);
    }
    return !hand->is_dead;
}

bool hand_pause(struct hand *hand, bool is_paused)
{
    do {
        sync_pause(hand->s, CRASH_WORKSPACE, is_paused);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

/* A pass that the store did not answer whole is begun anew, as the supervisor's. */
bool hand_recover(struct hand *hand, const char *prefix)
{
    bool is_whole;

    do {
        const struct taken_list held = sync_held_list(hand->s, CRASH_WORKSPACE, prefix);

        is_whole = was_answered(hand);
        for (size_t i = 0; i < held.count && !hand->is_dead; i++) {
            const struct taken *item = &held.items[i];

            sync_recover(hand->s, item->workspace, item->session, item->token.text);
            is_whole &= was_answered(hand);
        }
    } while (!is_whole && !hand->is_dead);
    return !hand->is_dead;
}

bool hand_audit(struct hand *hand, uint32_t *ret_mended)
{
    uint32_t mended = 0;

    do {
        mended += sync_audit(hand->s, CRASH_WORKSPACE);
    } while (must_repeat(hand));
    *ret_mended = mended;
    return !hand->is_dead;
}
