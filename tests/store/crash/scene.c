/* Scenes are built by the same calls that actors make. */
#include "tests/store/crash/scene.h"

#include <string.h>

#include "tests/store/crash/work.h"

const char scene_configuration[] =
    "target: {url: \"http://127.0.0.1:1/\"}\n"
    "kinds:\n"
    "  - {name: note, url: /n, idempotent: true, follow_up_edit: note.edit,"
    " follow_up_remove: note.undo}\n"
    "  - {name: note.edit, url: /n, idempotent: true}\n"
    "  - {name: note.undo, url: /n, idempotent: true}\n"
    "  - {name: pay, url: /p, follow_up_remove: pay.undo,"
    " verify: {url: \"/p/{id}\", delivered: 200, absent: 404}}\n"
    "  - {name: pay.undo, url: /p, idempotent: true}\n"
    "  - {name: ask, url: /a, ordering: first-due,"
    " verify: {url: \"/a/{id}\", delivered: 200, absent: 404}}\n"
    "  - {name: mark, url: /m, ordering: first-due, idempotent: true}\n"
    "  - {name: fire, url: /f}\n";

/* ---- what scenes are made of ---- */

static void accept(struct hand *hand, const char *id, const char *kind, const char *session,
                   const char *payload, const char *waits_for)
{
    const char *cmid = strcmp(id, "a") == 0 ? "ma" : "mb";
    const struct message message = {session, id, cmid, kind, payload, waits_for};

    hand_accept(hand, &message);
    hand->look(hand);
}

static void accept_plain(struct hand *hand, const char *id, const char *kind, const char *session)
{
    accept(hand, id, kind, session, "{\"v\":1}", "");
}

/* One claim, and what comes of its first entry. */
static void work_once(struct hand *hand, enum target_answer answer)
{
    const struct work_plan plan = {.first = answer, .is_single = true, .claims = 1};

    work(hand, &plan, NULL);
    hand->look(hand);
}

static void take_and_die(struct hand *dead)
{
    struct taken_list list;

    hand_claim(dead, &list);
    dead->look(dead);
    for (size_t i = 0; i < list.count; i++) {
        journal_request(dead->journal, dead->settings, &list.items[i], false);
        journal_stored(dead->journal, list.items[i].id);
    }
}

static void an_hour_passes(struct hand *hand)
{
    hand->pass_time(hand, AN_HOUR_MS);
}

/* ---- scenes ---- */

static void nothing(struct hand *hand, struct hand *dead)
{
    (void)hand;
    (void)dead;
}

static void two_payments(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
}

static void two_notes(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "note", "x");
    accept_plain(hand, "b", "note", "x");
}

static void two_sessions(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "note", "y");
}

static void first_due(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "ask", "x");
    accept_plain(hand, "b", "mark", "x");
}

static void two_questions(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "ask", "x");
    accept_plain(hand, "b", "ask", "x");
}

static void unverifiable_kinds(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "fire", "x");
    accept_plain(hand, "b", "fire", "x");
}

static void dependent_in_session(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "note", "x");
    accept(hand, "b", "pay", "x", "{\"a\":null}", "a");
}

static void dependent_elsewhere(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept(hand, "b", "note", "y", "{\"a\":null}", "a");
}

static void failed(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
    work_once(hand, TARGET_FAILS_IT);
}

static void failed_with_dependent(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "note", "x");
    accept(hand, "b", "note", "y", "{\"a\":null}", "a");
    work_once(hand, TARGET_CONFLICTS);
}

static void failed_chain(struct hand *hand, struct hand *dead)
{
    failed_with_dependent(hand, dead);
    hand_operate(hand, RESOLVER_REMOVE, "a", "");
    hand->look(hand);
}

static void unknown_and_stored(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
    work_once(hand, TARGET_ANSWER_LOST);
    an_hour_passes(hand);
}

static void unknown_and_absent(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
    work_once(hand, TARGET_REQUEST_LOST);
    an_hour_passes(hand);
}

static void refused_once(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
    work_once(hand, TARGET_REFUSES);
    an_hour_passes(hand);
}

static void in_backoff(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "mark", "x");
    accept_plain(hand, "b", "note", "x");
    work_once(hand, TARGET_ANSWER_LOST);
}

static void parked(struct hand *hand, struct hand *dead)
{
    unknown_and_stored(hand, dead);
    hand_walk(hand, WALK_PARK);
    hand->look(hand);
}

static void paused(struct hand *hand, struct hand *dead)
{
    two_sessions(hand, dead);
    hand_pause(hand, true);
    hand->look(hand);
}

static void owned(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
    work_once(hand, TARGET_OWNS_IT);
    an_hour_passes(hand);
}

/* The last of its look-ups told nothing, and a sweep may find out. */
static void unverifiable(struct hand *hand, struct hand *dead, enum target_answer answer,
                         bool is_ledger)
{
    const uint32_t was = sync_limits.max_verify_attempts;
    const struct work_plan blind = {
        .is_blind = true, .is_single = true, .is_ledger = is_ledger, .claims = 1};

    (void)dead;
    accept_plain(hand, "a", "pay", "x");
    accept_plain(hand, "b", "pay", "x");
    work_once(hand, answer);
    an_hour_passes(hand);
    sync_limits.max_verify_attempts = 1;
    work(hand, &blind, NULL);
    sync_limits.max_verify_attempts = was;
    hand->look(hand);
}

static void unverifiable_and_stored(struct hand *hand, struct hand *dead)
{
    unverifiable(hand, dead, TARGET_ANSWER_LOST, false);
}

static void ledger_failed(struct hand *hand, struct hand *dead)
{
    unverifiable(hand, dead, TARGET_REQUEST_LOST, true);
}

static void held_by_the_dead(struct hand *hand, struct hand *dead)
{
    two_payments(hand, dead);
    take_and_die(dead);
}

static void both_held_by_the_dead(struct hand *hand, struct hand *dead)
{
    two_sessions(hand, dead);
    take_and_die(dead);
}

static void held_and_parked(struct hand *hand, struct hand *dead)
{
    held_by_the_dead(hand, dead);
    hand_walk(hand, WALK_PARK);
    hand->look(hand);
}

static void held_with_dependent(struct hand *hand, struct hand *dead)
{
    dependent_elsewhere(hand, dead);
    take_and_die(dead);
}

static void followed(struct hand *hand, struct hand *dead)
{
    (void)dead;
    accept_plain(hand, "a", "note", "x");
    accept(hand, "b", "note", "y", "{\"a\":null}", "a");
    work_once(hand, TARGET_REFUSES);
    hand_operate(hand, RESOLVER_EDIT, "a", "{\"v\":5}");
    hand->look(hand);
    an_hour_passes(hand);
}

static void followed_and_failed(struct hand *hand, struct hand *dead)
{
    followed(hand, dead);
    work_once(hand, TARGET_FAILS_IT);
}

#define SCENE(name)                                                                                \
    {                                                                                              \
#name, name                                                                                \
    }

const struct scene scenes[] = {
    SCENE(nothing),
    SCENE(two_payments),
    SCENE(two_notes),
    SCENE(two_sessions),
    SCENE(first_due),
    SCENE(two_questions),
    SCENE(unverifiable_kinds),
    SCENE(dependent_in_session),
    SCENE(dependent_elsewhere),
    SCENE(failed),
    SCENE(failed_with_dependent),
    SCENE(failed_chain),
    SCENE(unknown_and_stored),
    SCENE(unknown_and_absent),
    SCENE(refused_once),
    SCENE(in_backoff),
    SCENE(parked),
    SCENE(paused),
    SCENE(owned),
    SCENE(unverifiable_and_stored),
    SCENE(ledger_failed),
    SCENE(held_by_the_dead),
    SCENE(both_held_by_the_dead),
    SCENE(held_and_parked),
    SCENE(held_with_dependent),
    SCENE(followed),
    SCENE(followed_and_failed),
};
const unsigned scene_count = sizeof(scenes) / sizeof(scenes[0]);

const struct scene *scene_find(const char *name)
{
    for (unsigned i = 0; i < scene_count; i++) {
        if (strcmp(scenes[i].name, name) == 0) {
            return &scenes[i];
        }
    }
    return NULL;
}
