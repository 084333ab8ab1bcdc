/* What is known of every entry beside the store: what its client was told, what its target was
 * sent and has, what became of it by the events. Whatever contradicts the contract is written
 * down. It holds no pointers: it is copied, and compared byte by byte. */
#ifndef TESTS_STORE_CRASH_JOURNAL_H
#define TESTS_STORE_CRASH_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/store/support/sync_store.h"

#define JOURNAL_MAX 24
#define JOURNAL_ID  16

enum journal_state {
    JOURNAL_UNKNOWN, /* somebody means to accept it */
    JOURNAL_WAITING, /* pending, verifying */
    JOURNAL_DELIVERING,
    JOURNAL_FAILED,
    JOURNAL_PARKED,
    JOURNAL_SENT,
    JOURNAL_REMOVED, /* discarded, too */
    JOURNAL_REPLACED,
    JOURNAL_LOST, /* deleted by a cleanup */
};

struct journal_entry {
    char id[JOURNAL_ID], cmid[JOURNAL_ID], kind[JOURNAL_ID], session[JOURNAL_ID];
    char waits_for[JOURNAL_ID], replaced_by[JOURNAL_ID];
    enum journal_state state;
    unsigned order; /* of acceptance, from 1; 0: not accepted */
    unsigned sent_events, sends_again;
    bool is_acknowledged;
    bool may_be_deleted; /* a cleanup was under way, or began later */
    bool is_stand_in;    /* replaces another: its place is that one's */
    bool has_failed_with_chain, is_echoed, has_result;
    /* the target's side */
    bool target_has;
    bool may_be_there; /* a request was sent, and nobody has proven yet that it came to nothing */
};

struct journal {
    struct journal_entry entries[JOURNAL_MAX];
    unsigned count, accepted;
    bool is_cleaning;
    char why[256]; /* empty: all holds */
};

struct kind;
struct redisReply;
struct settings;

void journal_fail(struct journal *journal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct journal_entry *journal_find(struct journal *journal, const char *id);
const struct kind *journal_kind(const struct journal_entry *entry, const struct settings *settings);

/* ---- clients and people ---- */

/* Before it is sent to the store. waits_for: an ID, or "". */
void journal_means(struct journal *journal, const char *id, const char *cmid,
                   const char *waits_for);
/* A client holds a 202 or a 200 that names it. */
void journal_acknowledge(struct journal *journal, const char *id);
void journal_cleanup_begins(struct journal *journal);
void journal_cleanup_ends(struct journal *journal);

/* ---- the target ---- */

/* A request for it starts, with that payload; is_late: other calls came between the one that said
 * so and this. */
void journal_request(struct journal *journal, const struct settings *settings,
                     const struct taken *taken, bool is_late);
/* The target stored it, or it came to nothing for certain. */
void journal_stored(struct journal *journal, const char *id);
void journal_refused(struct journal *journal, const char *id, const struct settings *settings);
/* A look-up that tells the truth: whether the target has it. */
bool journal_look_up(struct journal *journal, const char *id);

/* ---- the store ---- */

/* What a look at the whole store showed (look.h). */
void journal_read(struct journal *journal, const struct settings *settings,
                  const struct redisReply *events, const struct redisReply *entries,
                  const struct redisReply *tombstones);
/* Everything was driven to its end. */
void journal_check_end(struct journal *journal, const struct settings *settings);

#endif
