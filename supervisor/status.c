/* Figures of the line: workers and deliveries from shared memory (garbage there is a wrong figure),
 * what waits from the store's counters, one small read for each partition. */
#include "supervisor/status.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/core/keys.h"
#include "common/shm/metrics.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor_private.h"

#define TELL_EVERY_MS 3000
#define ASK_EVERY_MS  3000

static void on_counts(enum store_result result, const struct counts_answer *answer, void *arg)
{
    struct status *status = arg;

    for (unsigned i = 0; result == STORE_OK && i < STATUS_COUNT; i++) {
        status->next.by_status[i] += answer->by_status[i];
    }
    if (--status->counting == 0) {
        status->counts = status->next;
        status->has_counts = true;
    }
}

static void ask_counts(struct supervisor *supervisor, int64_t now_ms)
{
    struct status *status = &supervisor->status;

    if (supervisor->phase != PHASE_RUNNING || status->counting > 0 ||
        now_ms - status->asked_ms < ASK_EVERY_MS || !store_is_up(supervisor->store)) {
        return;
    }
    status->asked_ms = now_ms;
    status->next = (struct counts_answer){0};
    status->counting = PARTITION_COUNT;
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        store_counts(supervisor->store, p, on_counts, status);
    }
}

static uint64_t serving_processes(const struct supervisor *supervisor, enum shm_role role)
{
    uint64_t count = 0;

    for (uint32_t slot = 0; slot < shm_slot_count(supervisor->shm); slot++) {
        struct shm_process process;

        count += shm_slot_role(slot) == role &&
                 shm_process_read(supervisor->shm, slot, &process) == 0 &&
                 process.state == SHM_PROCESS_READY;
    }
    return count;
}

static uint64_t deliveries_in_flight(const struct supervisor *supervisor)
{
    struct metrics_snapshot *snapshot = malloc(sizeof(*snapshot));
    uint64_t held = 0;

    if (snapshot) {
        metrics_snapshot_all(supervisor->shm, snapshot);
        held = metrics_value(snapshot, METRIC_locks_held, 0);
        free(snapshot);
    }
    return held;
}

static enum status_line_kind running_kind(const struct supervisor *supervisor)
{
    if (!supervisor->is_ready) {
        return STATUS_LINE_STARTING;
    }
    if (supervisor->has_store_failed) {
        return STATUS_LINE_STORE_AWAY;
    }
    return serving_processes(supervisor, SHM_ROLE_API) > 0 ? STATUS_LINE_SERVING
                                                           : STATUS_LINE_NO_API;
}

static enum status_line_kind current_kind(const struct supervisor *supervisor)
{
    if (supervisor->phase < PHASE_RUNNING && supervisor->is_upgraded) {
        return STATUS_LINE_UPGRADING; /* whatever it looks at: its children serve */
    }
    switch (supervisor->phase) {
    case PHASE_STORE:
        return STATUS_LINE_WAITING_FOR_STORE;
    case PHASE_RECOVERY:
        return STATUS_LINE_RECOVERING;
    case PHASE_BINDING:
        return STATUS_LINE_BINDING;
    case PHASE_RUNNING:
        return running_kind(supervisor);
    case PHASE_DRAINING:
        return STATUS_LINE_DRAINING;
    case PHASE_OTHERS:
        return STATUS_LINE_WAITING_FOR_OTHERS;
    case PHASE_CLOSING_STORE:
    case PHASE_STOPPING_STORE:
    case PHASE_OVER:
        return STATUS_LINE_ENDING;
    }
    return STATUS_LINE_ENDING;
}

static void collect(const struct supervisor *supervisor, struct status_facts *ret)
{
    const struct status *status = &supervisor->status;
    const uint64_t *counts = status->counts.by_status;

    *ret = (struct status_facts){
        .kind = current_kind(supervisor),
        .workers = serving_processes(supervisor, SHM_ROLE_WORKER),
        .in_flight = deliveries_in_flight(supervisor),
        .has_counts = status->has_counts,
        .waiting = counts[STATUS_PENDING] + counts[STATUS_VERIFYING],
        .failed = counts[STATUS_ERROR],
        .away_since_wall_ms = status->away_since_wall_ms,
    };
}

void status_tick(struct supervisor *supervisor)
{
    struct status *status = &supervisor->status;
    const int64_t now_ms = clock_mono_ms();
    struct status_facts facts;
    char line[STATUS_LINE_MAX];

    if (!notify_is_heard()) {
        return;
    }
    notify_retry();
    if (!supervisor->has_store_failed) {
        status->away_since_wall_ms = 0;
    } else if (status->away_since_wall_ms == 0) {
        status->away_since_wall_ms = clock_wall_ms();
    }
    ask_counts(supervisor, now_ms);
    collect(supervisor, &facts);
    if (status->is_told && facts.kind == status->kind && now_ms - status->told_ms < TELL_EVERY_MS) {
        return;
    }
    status_line(&facts, line);
    status->is_told = true;
    status->kind = facts.kind;
    status->told_ms = now_ms;
    if (strcmp(line, status->line) != 0) {
        memcpy(status->line, line, sizeof(line));
        notify_status(line);
    }
}
