/* Who makes calls: an actor, whose answers may be lost and who may be stopped at any of them, or
 * the test itself. A call whose answer was lost goes on as its caller's code does: workers and the
 * supervisor repeat it, a client makes a new request of it. False: the hand is dead, and nothing
 * more is to be done with it. Everything happens in one workspace. */
#ifndef TESTS_STORE_CRASH_HAND_H
#define TESTS_STORE_CRASH_HAND_H

#include "tests/store/crash/journal.h"
#include "tests/store/support/sync_operate.h"

#define CRASH_WORKSPACE "ws"
#define AN_HOUR_MS      INT64_C(3600000)
#define LOCK_TTL_MS     (1000 * AN_HOUR_MS)
#define DEDUPE_TTL_MS   (100000 * AN_HOUR_MS)

struct hand {
    struct sync_store *s;
    const struct settings *settings;
    struct journal *journal;
    char name;     /* '0' to '9': of its IDs and tokens */
    unsigned made; /* of them */
    bool is_dead;
    void (*pass_time)(struct hand *hand, int64_t ms);
    /* What it is about to do is judged by what the store holds now: reads that. May be NULL. */
    void (*look)(struct hand *hand);
};

/* ---- clients and people ---- */

struct message {
    const char *session, *id, *cmid, *kind, *payload; /* id: "" for a new one with each try */
    const char *waits_for;                            /* or "" */
};
bool hand_accept(struct hand *hand, const struct message *message);
bool hand_operate(struct hand *hand, enum resolver_operation operation, const char *id,
                  const char *patch);
/* By ID; or, if that is "", by session and clientMessageID. */
bool hand_echo(struct hand *hand, const char *id, const char *session, const char *cmid,
               const char *result);
bool hand_walk(struct hand *hand, enum walk_kind kind);
bool hand_pause(struct hand *hand, bool is_paused);

/* ---- workers ---- */

/* At most two sessions. After a lost answer it gives back what that claim took, and claims again.
 */
bool hand_claim(struct hand *hand, struct taken_list *ret);
bool hand_note_baseline(struct hand *hand, const struct taken *taken, bool *ret_is_noted);
bool hand_begin_send(struct hand *hand, const struct taken *taken, struct begin_send_answer *ret);
bool hand_finish(struct hand *hand, const struct taken *taken, enum sent_via via,
                 const char *result, bool want_next, struct outcome_copy *ret);
bool hand_settle(struct hand *hand, const struct taken *taken, struct settle_request *request,
                 struct outcome_copy *ret);
bool hand_release(struct hand *hand, const struct taken *taken);

struct swept {
    char id[JOURNAL_ID], code[32];
    uint32_t attempts, sends;
};
/* False also when the answer was lost: the next pass finds them. */
bool hand_sweep_take(struct hand *hand, struct swept *ret, size_t room, size_t *ret_count);
bool hand_sweep_settle(struct hand *hand, const struct swept *swept, enum entry_status to,
                       uint32_t attempts);

/* ---- the supervisor ---- */

/* Takes back every session whose token begins so, and those whose lock has ended. */
bool hand_recover(struct hand *hand, const char *prefix);
bool hand_audit(struct hand *hand, uint32_t *ret_mended);

#endif
