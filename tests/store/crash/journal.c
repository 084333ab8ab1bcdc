/* Entries by ID, and the rules of the contract on them. */
#include "tests/store/crash/journal.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/settings.h"

void journal_fail(struct journal *journal, const char *format, ...)
{
    va_list args;

    if (journal->why[0] != '\0') {
        return;
    }
    va_start(args, format);
    vsnprintf(journal->why, sizeof(journal->why), format, args);
    va_end(args);
}

static void copy(char to[JOURNAL_ID], const char *from)
{
    snprintf(to, JOURNAL_ID, "%s", from);
}

struct journal_entry *journal_find(struct journal *journal, const char *id)
{
    for (unsigned i = 0; i < journal->count; i++) {
        if (strcmp(journal->entries[i].id, id) == 0) {
            return &journal->entries[i];
        }
    }
    return NULL;
}

static struct journal_entry *find_or_add(struct journal *journal, const char *id)
{
    struct journal_entry *entry = journal_find(journal, id);

    if (entry) {
        return entry;
    }
    if (journal->count == JOURNAL_MAX) {
        fprintf(stderr, "journal: no room for %s\n", id);
        abort();
    }
    entry = &journal->entries[journal->count++];
    copy(entry->id, id);
    return entry;
}

/* What it has become. */
static struct journal_entry *resolve(struct journal *journal, struct journal_entry *entry)
{
    while (entry && entry->state == JOURNAL_REPLACED && entry->replaced_by[0] != '\0') {
        entry = journal_find(journal, entry->replaced_by);
    }
    return entry;
}

const struct kind *journal_kind(const struct journal_entry *entry, const struct settings *settings)
{
    return settings_kind(settings, entry->kind, strlen(entry->kind));
}

static const char *state_name(enum journal_state state)
{
    static const char *const names[] = {
        [JOURNAL_UNKNOWN] = "not accepted",    [JOURNAL_WAITING] = "waiting",
        [JOURNAL_DELIVERING] = "delivering",   [JOURNAL_FAILED] = "error",
        [JOURNAL_PARKED] = "parked",           [JOURNAL_SENT] = "sent",
        [JOURNAL_REMOVED] = "removed",         [JOURNAL_REPLACED] = "replaced",
        [JOURNAL_LOST] = "gone with a cleanup"};

    return names[state];
}

/* ---- clients and people ---- */

void journal_means(struct journal *journal, const char *id, const char *cmid, const char *waits_for)
{
    struct journal_entry *entry = find_or_add(journal, id);

    copy(entry->cmid, cmid);
    copy(entry->waits_for, waits_for);
}

void journal_acknowledge(struct journal *journal, const char *id)
{
    struct journal_entry *entry = journal_find(journal, id);

    if (!entry || entry->order == 0) {
        journal_fail(journal, "%s was acknowledged and is not stored", id);
        return;
    }
    entry->is_acknowledged = true;
}

void journal_cleanup_begins(struct journal *journal)
{
    journal->is_cleaning = true;
    for (unsigned i = 0; i < journal->count; i++) {
        journal->entries[i].may_be_deleted |= journal->entries[i].order > 0;
    }
}

void journal_cleanup_ends(struct journal *journal)
{
    journal->is_cleaning = false;
}

/* ---- the target ---- */

/* Contract §6: not before what it depends on, and with what that one's result fills. */
static void check_dependency(struct journal *journal, const struct journal_entry *entry,
                             const struct taken *taken)
{
    struct journal_entry *dep = journal_find(journal, entry->waits_for);

    dep = resolve(journal, dep);
    if (!dep) {
        return;
    }
    if (dep->state == JOURNAL_SENT) {
        if (dep->has_result && !strstr(taken->payload, "\"r-")) {
            journal_fail(journal, "%s is sent as %s: it lacks the result of %s", entry->id,
                         taken->payload, dep->id);
        }
    } else if (!entry->has_failed_with_chain && dep->state != JOURNAL_LOST) {
        journal_fail(journal, "%s is sent, but %s, which it waits for, is %s", entry->id, dep->id,
                     state_name(dep->state));
    }
}

/* A re-send of what is not idempotent is always preceded by a verification (contract §3); where
 * there is none, a person has to say so. */
static void check_repetition(struct journal *journal, struct journal_entry *entry,
                             const struct kind *kind)
{
    if (kind->is_idempotent) {
        return;
    }
    if (entry->target_has && kind_can_look_up(kind)) {
        journal_fail(journal, "%s is sent again, and its target has it", entry->id);
    } else if (entry->may_be_there && entry->sends_again == 0) {
        journal_fail(journal, "%s is sent again without a verification", entry->id);
    }
    entry->sends_again = 0;
}

void journal_request(struct journal *journal, const struct settings *settings,
                     const struct taken *taken, bool is_late)
{
    struct journal_entry *entry = journal_find(journal, taken->id);

    if (!entry) {
        journal_fail(journal, "%s is sent, and nobody accepted it", taken->id);
        return;
    }
    if (entry->state != JOURNAL_DELIVERING && !(is_late && entry->state == JOURNAL_PARKED)) {
        journal_fail(journal, "%s is sent and is %s", entry->id, state_name(entry->state));
    }
    check_dependency(journal, entry, taken);
    check_repetition(journal, entry, journal_kind(entry, settings));
    entry->may_be_there = true;
}

void journal_stored(struct journal *journal, const char *id)
{
    struct journal_entry *entry = journal_find(journal, id);

    if (entry) {
        entry->target_has = true;
    }
}

void journal_refused(struct journal *journal, const char *id, const struct settings *settings)
{
    struct journal_entry *entry = journal_find(journal, id);

    /* Where it can be looked up, that is asked for all the same. */
    if (entry && !kind_can_look_up(journal_kind(entry, settings))) {
        entry->may_be_there = false;
    }
}

bool journal_look_up(struct journal *journal, const char *id)
{
    struct journal_entry *entry = journal_find(journal, id);

    if (entry && !entry->target_has) {
        entry->may_be_there = false;
    }
    return entry && entry->target_has;
}

/* ---- events ---- */

static const char *word(const struct redisReply *row, size_t at)
{
    return at < row->elements && row->element[at]->str ? row->element[at]->str : "";
}

enum event_column { TYPE, ID, SESSION, KIND, CMID, CODE, REPLACES, REASON };

static struct journal_entry *note_accepted(struct journal *journal, const struct redisReply *event)
{
    struct journal_entry *entry = find_or_add(journal, word(event, ID));

    if (entry->order > 0) {
        journal_fail(journal, "%s is accepted twice", entry->id);
    }
    copy(entry->session, word(event, SESSION));
    copy(entry->kind, word(event, KIND));
    copy(entry->cmid, word(event, CMID));
    entry->order = ++journal->accepted;
    entry->may_be_deleted = journal->is_cleaning;
    return entry;
}

static void note_rearmed(struct journal *journal, const struct redisReply *event)
{
    struct journal_entry *old = journal_find(journal, word(event, REPLACES));

    if (old) {
        struct journal_entry *entry = note_accepted(journal, event);

        entry->is_stand_in = true;
        entry->is_acknowledged = old->is_acknowledged;
        entry->may_be_deleted |= old->may_be_deleted;
        entry->has_failed_with_chain = old->has_failed_with_chain;
        copy(entry->waits_for, old->waits_for);
        return;
    }
    struct journal_entry *entry = journal_find(journal, word(event, ID));

    if (entry &&
        (strcmp(word(event, REASON), "retry") == 0 || strcmp(word(event, REASON), "edit") == 0)) {
        entry->sends_again++;
    }
}

static void note_event(struct journal *journal, const struct redisReply *event)
{
    const char *type = word(event, TYPE);
    struct journal_entry *entry = journal_find(journal, word(event, ID));

    if (strcmp(type, "accepted") == 0) {
        note_accepted(journal, event);
    } else if (strcmp(type, "rearmed") == 0) {
        note_rearmed(journal, event);
    } else if (!entry) {
        journal_fail(journal, "an event (%s) of %s, which nobody accepted", type, word(event, ID));
    } else if (strcmp(type, "sent") == 0) {
        entry->sent_events++;
        entry->state = JOURNAL_SENT;
    } else if (strcmp(type, "removed") == 0) {
        entry->state = JOURNAL_REMOVED;
    } else if (strcmp(type, "error") == 0) {
        entry->has_failed_with_chain |= strcmp(word(event, CODE), "dependency_discarded") == 0;
    }
}

/* ---- how everything stands ---- */

static enum journal_state state_of(const char *status)
{
    static const struct {
        const char *status;
        enum journal_state state;
    } states[] = {{"pending", JOURNAL_WAITING},
                  {"verifying", JOURNAL_WAITING},
                  {"delivering", JOURNAL_DELIVERING},
                  {"error", JOURNAL_FAILED},
                  {"parked", JOURNAL_PARKED}};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (strcmp(status, states[i].status) == 0) {
            return states[i].state;
        }
    }
    return JOURNAL_UNKNOWN;
}

static const struct redisReply *row_of(const struct redisReply *rows, const char *id)
{
    for (size_t i = 0; i < rows->elements; i++) {
        if (strcmp(word(rows->element[i], 0), id) == 0) {
            return rows->element[i];
        }
    }
    return NULL;
}

/* Neither stored nor `sent` nor `removed` by the events. */
static void note_gone(struct journal *journal, struct journal_entry *entry,
                      const struct redisReply *tombstone)
{
    if (tombstone && strcmp(word(tombstone, 1), "replaced") == 0) {
        entry->state = JOURNAL_REPLACED;
        copy(entry->replaced_by, word(tombstone, 2));
    } else if (entry->may_be_deleted) {
        entry->state = JOURNAL_LOST;
    } else {
        journal_fail(journal, "%s is lost: not stored, and nothing says how it ended", entry->id);
    }
}

static void note_state(struct journal *journal, struct journal_entry *entry,
                       const struct redisReply *stored, const struct redisReply *tombstone)
{
    const bool has_ended = entry->state == JOURNAL_SENT || entry->state == JOURNAL_REMOVED ||
                           entry->state == JOURNAL_REPLACED || entry->state == JOURNAL_LOST;

    entry->has_result |= tombstone && strcmp(word(tombstone, 3), "1") == 0;
    entry->is_echoed |= tombstone && strcmp(word(tombstone, 4), "echo") == 0;
    if (stored && has_ended) {
        journal_fail(journal, "%s is stored and was %s", entry->id, state_name(entry->state));
    } else if (stored) {
        entry->state = state_of(word(stored, 1));
    } else if (!has_ended) {
        note_gone(journal, entry, tombstone);
    } else if (tombstone && !entry->may_be_deleted && entry->state == JOURNAL_SENT &&
               strcmp(word(tombstone, 1), "sent") != 0) {
        journal_fail(journal, "%s was sent and ended %s", entry->id, word(tombstone, 1));
    }
    if (entry->sent_events > 1) {
        journal_fail(journal, "%s has %u sent events", entry->id, entry->sent_events);
    }
}

/* Contract §3: in order of acceptance where kinds are strict, one at a time in any case. */
static void check_order(struct journal *journal, const struct settings *settings, const char *id)
{
    const struct journal_entry *entry = journal_find(journal, id);

    for (unsigned i = 0; entry && i < journal->count; i++) {
        const struct journal_entry *other = &journal->entries[i];

        if (other == entry || other->order == 0 || strcmp(other->session, entry->session) != 0 ||
            entry->state != JOURNAL_DELIVERING) {
            continue;
        }
        if (other->state == JOURNAL_DELIVERING) {
            journal_fail(journal, "%s is taken while %s is delivered", entry->id, other->id);
        }
        if (other->state == JOURNAL_WAITING && other->order < entry->order && !entry->is_stand_in &&
            journal_kind(other, settings)->ordering == ORDERING_STRICT) {
            journal_fail(journal, "%s is taken before %s", entry->id, other->id);
        }
    }
}

void journal_read(struct journal *journal, const struct settings *settings,
                  const struct redisReply *events, const struct redisReply *entries,
                  const struct redisReply *tombstones)
{
    for (size_t i = 0; i < events->elements; i++) {
        note_event(journal, events->element[i]);
    }
    for (unsigned i = 0; i < journal->count; i++) {
        struct journal_entry *entry = &journal->entries[i];

        if (entry->order > 0) {
            note_state(journal, entry, row_of(entries, entry->id), row_of(tombstones, entry->id));
        }
    }
    for (size_t i = 0; i < entries->elements; i++) {
        const struct journal_entry *entry = journal_find(journal, word(entries->element[i], 0));

        if (!entry || entry->order == 0) {
            journal_fail(journal, "%s is stored, and no event says so",
                         word(entries->element[i], 0));
        }
    }
    for (size_t i = 0; i < events->elements; i++) {
        if (strcmp(word(events->element[i], TYPE), "delivering") == 0) {
            check_order(journal, settings, word(events->element[i], ID));
        }
    }
}

/* ---- the end ---- */

static bool is_meant(const struct journal_entry *entry)
{
    return entry->order > 0 && !entry->may_be_deleted && entry->state != JOURNAL_REPLACED;
}

static void check_entry_at_end(struct journal *journal, const struct journal_entry *entry)
{
    if (entry->state != JOURNAL_SENT && entry->state != JOURNAL_REMOVED) {
        journal_fail(journal, "%s is %s at the end", entry->id, state_name(entry->state));
    }
    if (entry->sent_events != (entry->state == JOURNAL_SENT)) {
        journal_fail(journal, "%s was %s, with %u sent events", entry->id, state_name(entry->state),
                     entry->sent_events);
    }
    if (entry->state == JOURNAL_SENT && !entry->target_has && !entry->is_echoed) {
        journal_fail(journal, "%s counts as sent, and its target has not got it", entry->id);
    }
}

void journal_check_end(struct journal *journal, const struct settings *settings)
{
    (void)settings;
    for (unsigned i = 0; i < journal->count; i++) {
        const struct journal_entry *entry = &journal->entries[i];

        if (!is_meant(entry)) {
            continue;
        }
        check_entry_at_end(journal, entry);
        for (unsigned j = i + 1; j < journal->count && entry->cmid[0] != '\0'; j++) {
            const struct journal_entry *other = &journal->entries[j];

            if (is_meant(other) && strcmp(other->cmid, entry->cmid) == 0 &&
                strcmp(other->session, entry->session) == 0) {
                journal_fail(journal, "%s and %s are one message", entry->id, other->id);
            }
        }
    }
}
