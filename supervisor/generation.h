/* One run of a supervisor: its state directory, the locks that say that it lives, its random
 * number. Contract §8. */
#ifndef SUPERVISOR_GENERATION_H
#define SUPERVISOR_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/settings.h"

struct privileges;

struct generation {
    char *state_dir; /* owned; absolute */
    char node[65];
    uint64_t number;
    int supervisor_lock; /* STATE_DIR/supervisor.lock; -1: not held */
    int slot_lock;       /* STATE_DIR/locks/GENERATION.0; -1: not held */
};

void generation_init(struct generation *generation);
/* Makes the state directory, takes both locks, gives the directory to the children's user, draws
 * the number. Logs what is wrong (who holds the
 * lock, which setting to change). Returns 0 or -errno; generation_done() in either case. */
int generation_begin(struct generation *generation, const struct settings *settings,
                     const struct privileges *privileges);
/* The same process goes on as another program: takes over node, number and both locks. 0 or -errno.
 */
struct upgrade_state;
int generation_resume(struct generation *generation, const struct settings *settings,
                      const struct upgrade_state *state);
/* Another number, for a new segment. 0 or -errno (logged). */
int generation_renew(struct generation *generation);
/* Gives the locks back and removes our lock file. */
void generation_done(struct generation *generation);

/* Random bits for generations and incarnations; never 0. */
uint64_t generation_random(void);

/* The segments of generations whose supervisor is gone: unlinked. Children that still drain keep
 * theirs mapped. */
void generation_remove_stale_segments(const struct generation *generation);

/* Every lock file of other generations of this state directory. */
typedef void generation_lock_cb(uint64_t number, uint32_t slot, bool is_free, void *arg);
void generation_each_lock(const struct generation *generation, generation_lock_cb *cb, void *arg);
/* Whether processes of earlier generations still drain. */
bool generation_others_live(const struct generation *generation);
/* Removes a lock file, if it is free: only when nothing in the store refers to it any more. */
void generation_remove_lock(const struct generation *generation, uint64_t number, uint32_t slot);

#endif
