/* What the model test knows, without asking the store: what was accepted, confirmed, discarded and
 * replaced, what waits for what, and which members of a payload are known. Entries are numbers:
 * entry 7 is `e7` and was made by operation 7, also where other operations are left out. */
#ifndef TESTS_STORE_MODEL_WORLD_H
#define TESTS_STORE_MODEL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/store/support/sync_operate.h"

#define MODEL_WORKSPACES 3
#define MODEL_LANES      3
#define MODEL_MEMBERS    2 /* members of a payload that results can fill: `a`, `b` */
#define MODEL_DEPS       24
#define MODEL_NONE       (-1)

struct model_kind {
    const char *name;
    bool is_idempotent;
    int edit, remove; /* follow-ups: kinds, or MODEL_NONE */
};
extern const struct model_kind model_kinds[];
extern const char model_configuration[];
extern const char *const model_lanes[MODEL_LANES];
bool model_lane_is_strict(int lane);
/* The kinds that clients send to a lane: variant 0 or 1. */
int model_kind_of_lane(int lane, unsigned variant);

enum model_state { MODEL_UNUSED, MODEL_OPEN, MODEL_SENT, MODEL_GONE, MODEL_REPLACED };
enum model_part { MODEL_PART_NONE, MODEL_PART_EDIT, MODEL_PART_REMOVE };

struct model_dep {
    int on;
    bool is_waived; /* it was discarded, or never was: a person's retry sends without it */
};

/* An entry as the store has it. */
struct seen {
    bool is_there, is_staged;
    char status[16], code[32], if_match[32], content[48];
    unsigned sends;
    int64_t accepted_ms;
};

struct model_entry {
    enum model_state state;
    int ws, lane, kind;
    bool has_cmid;
    int replaced_by;
    struct model_dep deps[MODEL_DEPS];
    int dep_count;
    enum model_part part;
    int root;
    bool has_failed_with_chain; /* what it waits for was discarded, nobody has retried it since */
    bool was_parked;
    int values[MODEL_MEMBERS]; /* which entry's result is there; MODEL_NONE: null */
    int version;               /* the last edit's number, or its own */
    unsigned results;          /* of its confirmation: bits of members */
    int awaited[MODEL_DEPS];   /* confirmed by an echo, their answers are still to come */
    int awaited_count;
    int conflict, if_match; /* the number of a revision, or MODEL_NONE */
    int64_t rank_floor;     /* it stands in for one that others waited for */
    unsigned sent_events;
    bool has_claim, is_claim_new, has_old;
    struct taken claim, old; /* what a worker holds; what one believes to hold */
    char claimed_content[48];
    struct seen seen;
};

struct world {
    struct sync_store *s;
    const struct settings *settings;
    char workspaces[MODEL_WORKSPACES][8];
    bool is_paused[MODEL_WORKSPACES];
    struct model_entry *entries;
    int room, count; /* in entries; used so far */
    int now;         /* the operation that is carried out */
    bool is_slow;    /* checks everything after every step */
    char why[512];   /* empty: all holds */
};

void world_init(struct world *world, struct sync_store *s, const struct settings *settings,
                int room);
void world_done(struct world *world);
/* Writes down the first thing that does not hold. */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `e12` -> 12; MODEL_NONE for what is no entry of ours. */
int world_number(const struct world *world, const char *id);
const char *world_id(int number, char room[16]);
/* What an entry has become: through replacements. */
int world_resolve(const struct world *world, int number);
bool world_is_open(const struct world *world, int number);
bool world_waits_for(const struct world *world, int number, int other);
/* The oldest acceptance among itself and all that wait for it (contract §6). */
int64_t world_rank(const struct world *world, int number);

struct model_entry *world_create(struct world *world, int number, int ws, int lane, int kind);
void world_add_dep(struct world *world, int number, int on);
void world_confirm(struct world *world, int number, unsigned results);
/* What waits for the answer of `number` has it. */
void world_answer(struct world *world, int number, unsigned results);
/* It is gone: what waits for it fails, after it was given what it knows. */
void world_discard(struct world *world, int number, bool gives);
void world_rearm(struct world *world, int number);
void world_replace(struct world *world, int number, int by);
/* The newest of the chain of follow-ups that the entry belongs to; *ret_root: what it is about. */
int world_newest(const struct world *world, int number, int *ret_root);
void world_follow_up(struct world *world, int number, int target, enum model_part part);

#endif
