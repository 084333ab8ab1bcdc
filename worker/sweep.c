/* Passes over the partitions. Entries are taken in portions, in turn from each partition, as many
 * as there is room for look-ups. What was taken is not due again before the next pass
 * (sweep_take.lua), and a pass begins nothing more once an interval is over: passes never stack. */
#include "worker/sweep.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/core/keys.h"
#include "common/store/store_sweep.h"
#include "worker/sweep_entry.h"
#include "worker/worker.h"

#define LOOKUPS_MAX     64
#define PORTION_MAX     16
#define HINTED_EVERY_MS 1000
#define RETRY_AFTER_MS  1000 /* after a pass that the store did not answer */
#define LOOKUP_SPARE_MS 1000
#define ASKED_MAX       1024

/* A workspace that this pass has asked about. */
struct asked {
    char workspace[WORKSPACE_ENC_MAX + 1];
    bool has_answered;
};

struct sweep {
    struct worker *worker;
    bool is_wanted[PARTITION_COUNT]; /* to be looked at in this pass */
    bool is_hinted[PARTITION_COUNT];
    int64_t looked_ms[PARTITION_COUNT]; /* monotonic: when it was read last */
    uint32_t next;                      /* whose turn it is */
    uint32_t taking;                    /* the partition that is being read */
    bool is_taking, is_passing, is_full, has_failed, is_stopped;
    int64_t began_ms, next_pass_ms; /* monotonic */
    uint32_t running;
    struct asked asked[ASKED_MAX];
    size_t asked_count;
};

static void go_on(struct sweep *sweep);

/* ---- workspaces whose target is away ---- */

static struct asked *find_asked(struct sweep *sweep, const char *workspace, size_t len)
{
    for (size_t i = 0; i < sweep->asked_count; i++) {
        struct asked *asked = &sweep->asked[i];

        if (strlen(asked->workspace) == len && memcmp(asked->workspace, workspace, len) == 0) {
            return asked;
        }
    }
    return NULL;
}

static void note_asked(struct sweep *sweep, const char *workspace, bool has_answered)
{
    struct asked *asked = find_asked(sweep, workspace, strlen(workspace));

    if (!asked && sweep->asked_count < ASKED_MAX) {
        asked = &sweep->asked[sweep->asked_count++];
        *asked = (struct asked){0};
        snprintf(asked->workspace, sizeof(asked->workspace), "%s", workspace);
    }
    if (asked) {
        asked->has_answered |= has_answered;
    }
}

/* It was asked, and nothing came: the rest of it waits for the next pass. */
static bool is_away(struct sweep *sweep, struct span workspace)
{
    const struct asked *asked = find_asked(sweep, workspace.ptr, workspace.len);

    return asked && !asked->has_answered;
}

/* ---- a pass ---- */

static int64_t interval_ms(const struct sweep *sweep)
{
    return sweep->worker->settings->parked_sweep_interval;
}

/* Less than an interval, so that the next pass finds it due again; longer than any look-up. */
static int64_t hold_ms(const struct sweep *sweep)
{
    const struct settings *settings = sweep->worker->settings;
    const int64_t lookup_ms = settings->ledger_lookup_timeout > settings->verify_timeout
                                  ? settings->ledger_lookup_timeout
                                  : settings->verify_timeout;
    const int64_t hold = interval_ms(sweep) - interval_ms(sweep) / 10;

    return hold > lookup_ms + LOOKUP_SPARE_MS ? hold : lookup_ms + LOOKUP_SPARE_MS;
}

static void on_entry_done(const char *workspace, bool has_answered, void *arg)
{
    struct sweep *sweep = arg;

    note_asked(sweep, workspace, has_answered);
    sweep->running--;
    go_on(sweep);
}

static void on_taken(enum store_result result, const struct sweep_take_answer *answer, void *arg)
{
    struct sweep *sweep = arg;
    const bool is_late = clock_mono_ms() - sweep->began_ms > interval_ms(sweep);

    sweep->has_failed |= result != STORE_OK;
    sweep->is_wanted[sweep->taking] = result == STORE_OK && answer->has_more && !is_late;
    for (size_t i = 0; result == STORE_OK && !sweep->is_stopped && i < answer->count; i++) {
        if (is_away(sweep, answer->entries[i].workspace)) {
            continue;
        }
        sweep->running++;
        if (sweep_entry_start(sweep->worker, &answer->entries[i], on_entry_done, sweep) < 0) {
            sweep->running--; /* out of memory: it is due again in the next pass */
        }
    }
    sweep->is_taking = false;
    go_on(sweep);
}

/* Reads the next partition that is to be looked at. False: there is none. */
static bool take(struct sweep *sweep)
{
    const uint32_t room = LOOKUPS_MAX - sweep->running;

    for (uint32_t i = 0; i < PARTITION_COUNT; i++) {
        const uint32_t p = (sweep->next + i) % PARTITION_COUNT;

        if (sweep->is_wanted[p]) {
            sweep->next = (p + 1) % PARTITION_COUNT;
            sweep->taking = p;
            sweep->is_taking = true;
            sweep->looked_ms[p] = clock_mono_ms();
            store_sweep_take(sweep->worker->store, p, room < PORTION_MAX ? room : PORTION_MAX,
                             hold_ms(sweep), on_taken, sweep);
            return true;
        }
    }
    return false;
}

static void end_pass(struct sweep *sweep)
{
    sweep->is_passing = false;
    sweep->asked_count = 0;
    if (sweep->is_full && !sweep->has_failed) {
        metrics_loop_ran(sweep->worker->metrics, LABEL_LOOP_SWEEP, clock_wall_ms());
    } else if (sweep->is_full) {
        sweep->next_pass_ms = clock_mono_ms() + RETRY_AFTER_MS;
    }
}

static void go_on(struct sweep *sweep)
{
    if (sweep->is_stopped) {
        worker_check_drained(sweep->worker);
        return;
    }
    if (!sweep->is_passing || sweep->is_taking || sweep->running >= LOOKUPS_MAX || take(sweep)) {
        return;
    }
    if (sweep->running == 0) {
        end_pass(sweep);
    }
}

/* All partitions once an interval; between, those that hints named. */
static void begin_pass(struct sweep *sweep)
{
    const int64_t now = clock_mono_ms();
    bool is_any_wanted = false;

    sweep->is_full = now >= sweep->next_pass_ms;
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        const bool may_follow_hint =
            sweep->is_hinted[p] && now - sweep->looked_ms[p] >= HINTED_EVERY_MS;

        sweep->is_wanted[p] = sweep->is_full || may_follow_hint;
        sweep->is_hinted[p] &= !sweep->is_wanted[p];
        is_any_wanted |= sweep->is_wanted[p];
    }
    if (sweep->is_full) {
        sweep->next_pass_ms = now + interval_ms(sweep);
    }
    sweep->is_passing = is_any_wanted;
    sweep->has_failed = false;
    sweep->began_ms = now;
}

void sweep_tick(struct sweep *sweep)
{
    if (!sweep->is_stopped && !sweep->is_passing) {
        begin_pass(sweep);
        go_on(sweep);
    }
}

void sweep_hint(struct sweep *sweep, uint32_t partition)
{
    if (partition < PARTITION_COUNT) {
        sweep->is_hinted[partition] = true;
    }
}

void sweep_stop(struct sweep *sweep)
{
    sweep->is_stopped = true;
}

uint32_t sweep_outstanding(const struct sweep *sweep)
{
    return sweep->running + sweep->is_taking;
}

int sweep_create(struct worker *worker, struct sweep **ret)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));

    if (!sweep) {
        return -ENOMEM;
    }
    sweep->worker = worker;
    sweep->next_pass_ms = clock_mono_ms(); /* what the last generation left is looked at at once */
    *ret = sweep;
    return 0;
}

void sweep_destroy(struct sweep **sweep)
{
    free(*sweep);
    *sweep = NULL;
}
