/* The scheduler. One claim at most is outstanding for each partition; what is asked for is
 * reserved, so that answers never bring more than there is room for. One timer stands at the
 * earliest time at which anything is due. */
#include "worker/claim.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/core/keys.h"
#include "worker/delivery.h"
#include "worker/held.h"
#include "worker/quota.h"
#include "worker/reconcile.h"
#include "worker/worker.h"

#define READ_EVERY_MS  1000 /* every partition, whatever hints say */
#define RETRY_AFTER_MS 100  /* when the store did not answer */
#define BATCH_MIN      4    /* of a mere look: all partitions together then reserve little */
#define BATCH_MAX      64   /* where more was found */
#define PER_WORKSPACE                                                                              \
    8 /* "a few sessions of each due workspace in turn"; more while few are due                    \
       */
#define QUOTAS_MAX 128
#define NEVER      INT64_MAX

struct partition {
    struct scheduler *scheduler;
    int64_t due_ms;        /* monotonic: when to read it next */
    int64_t not_before_ms; /* after a failure: no earlier than that, whatever is due */
    int64_t sent_boot_ms;  /* when the outstanding claim was sent: locks count from before that */
    uint32_t reserved, batch, per_workspace;
    uint32_t at_limit; /* workspaces that were told to wait because of what they hold already */
    bool is_claiming;
    bool is_marked_again; /* while a claim was outstanding */
    bool is_held;
    bool has_answered;
};

struct scheduler {
    struct worker *worker;
    uv_timer_t timer;
    struct partition partitions[PARTITION_COUNT];
    uint32_t outstanding, reserved, answered;
    uint32_t next;   /* where the next round begins: no partition is always last */
    bool is_starved; /* something was due and there was no room */
    bool is_stopped;
    bool is_running; /* guards against a round within a round */
};

static void run(struct scheduler *scheduler);

static int64_t ready_ms(const struct partition *partition)
{
    return partition->due_ms > partition->not_before_ms ? partition->due_ms
                                                        : partition->not_before_ms;
}

static uint32_t capacity(const struct scheduler *scheduler)
{
    const struct worker *worker = scheduler->worker;
    const uint32_t limit = worker->settings->max_in_flight;
    const uint32_t used = held_used(worker->held) + scheduler->reserved;

    return used < limit ? limit - used : 0;
}

static void on_timer(uv_timer_t *timer)
{
    run(timer->data);
}

static void arm(struct scheduler *scheduler)
{
    int64_t earliest = NEVER;

    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        const struct partition *partition = &scheduler->partitions[p];

        if (!partition->is_claiming && !partition->is_held && ready_ms(partition) < earliest) {
            earliest = ready_ms(partition);
        }
    }
    if (earliest == NEVER || scheduler->is_stopped) {
        uv_timer_stop(&scheduler->timer);
        return;
    }
    uv_update_time(scheduler->worker->loop);
    const int64_t left = earliest - clock_mono_ms();
    /* Without room, a freed place runs the next round; the timer is only a net under it. */
    const int64_t wait = scheduler->is_starved && left < 10 ? 10 : left;

    uv_timer_start(&scheduler->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void note_due(struct partition *partition, int64_t at_ms)
{
    if (at_ms < partition->due_ms) {
        partition->due_ms = at_ms;
    }
}

/* How much to ask for next time. Where a claim's room was not used up although more is due, few
 * workspaces share it: each may take more in one turn. */
static void adapt(struct partition *partition, const struct claim_answer *answer, uint32_t asked)
{
    if (!answer->has_more) {
        partition->batch = BATCH_MIN;
        partition->per_workspace = PER_WORKSPACE;
        return;
    }
    partition->batch = BATCH_MAX;
    if (answer->count < asked && partition->per_workspace < BATCH_MAX) {
        partition->per_workspace *= 2;
    } else if (answer->count >= asked && partition->per_workspace > PER_WORKSPACE) {
        partition->per_workspace /= 2;
    }
}

static void on_claimed(enum store_result result, const struct claim_answer *answer, void *arg)
{
    struct partition *partition = arg;
    struct scheduler *scheduler = partition->scheduler;
    struct worker *worker = scheduler->worker;
    const uint32_t number = (uint32_t)(partition - scheduler->partitions);
    const int64_t now = clock_mono_ms();

    partition->is_claiming = false;
    scheduler->outstanding--;
    const uint32_t asked = partition->reserved;

    scheduler->reserved -= asked;
    partition->reserved = 0;
    if (result != STORE_OK) {
        note_due(partition, now);
        partition->not_before_ms = now + RETRY_AFTER_MS;
        if (result != STORE_AWAY) {
            /* It may have happened all the same (NOT_DURABLE, ERROR half-way): what it locked is
             * given back. */
            reconcile_partition(worker->reconcile, number);
        }
    } else {
        for (size_t i = 0; i < answer->count; i++) {
            delivery_take(worker, &answer->claims[i], partition->sent_boot_ms);
        }
        note_due(partition, now + READ_EVERY_MS);
        if (answer->next_due_ms >= 0) {
            note_due(partition, now + answer->next_due_ms);
        }
        adapt(partition, answer, asked);
        if (answer->has_more || partition->is_marked_again) {
            note_due(partition, now);
        }
        metrics_loop_ran(worker->metrics, LABEL_LOOP_CLAIM, clock_wall_ms());
        if (!partition->has_answered) {
            partition->has_answered = true;
            if (++scheduler->answered == PARTITION_COUNT) {
                worker_is_ready(worker);
            }
        }
    }
    partition->is_marked_again = false;
    reconcile_claim_came_back(worker->reconcile, number);
    run(scheduler);
    worker_check_drained(worker);
}

/* Workspaces of a partition that may not take one more session for now. */
static uint32_t count_at_limit(const struct scheduler *scheduler, uint32_t number, uint32_t free)
{
    struct held_workspace used[QUOTAS_MAX];
    const uint32_t count = held_workspaces_of(scheduler->worker->held, number, used, QUOTAS_MAX);
    uint32_t at_limit = 0;

    for (uint32_t i = 0; i < count; i++) {
        at_limit += quota_for(used[i].count, free) == 0;
    }
    return at_limit;
}

static void claim(struct scheduler *scheduler, uint32_t number, uint32_t free)
{
    struct worker *worker = scheduler->worker;
    struct partition *partition = &scheduler->partitions[number];
    struct held_workspace used[QUOTAS_MAX];
    struct claim_quota quotas[QUOTAS_MAX];
    const uint32_t count = held_workspaces_of(worker->held, number, used, QUOTAS_MAX);
    const uint32_t max = free < partition->batch ? free : partition->batch;

    partition->at_limit = 0;
    for (uint32_t i = 0; i < count; i++) {
        partition->at_limit += quota_for(used[i].count, free) == 0;
        quotas[i] =
            (struct claim_quota){.workspace = used[i].name, .max = quota_for(used[i].count, free)};
    }
    const uint32_t fresh = quota_for(0, free); /* for a workspace that holds nothing yet */
    const struct claim_request request = {
        .partition = number,
        .token = worker_next_token(worker),
        .max = max,
        .max_per_workspace = fresh < partition->per_workspace ? fresh : partition->per_workspace,
        .quotas = quotas,
        .quota_count = count,
    };

    partition->is_claiming = true;
    partition->due_ms = NEVER; /* what is noted from here on is kept beside the answer */
    partition->sent_boot_ms = clock_boot_ms();
    partition->reserved = max;
    scheduler->outstanding++;
    scheduler->reserved += max;
    store_claim(worker->store, &request, on_claimed, partition);
}

/* One round over the partitions that are due. */
static void run(struct scheduler *scheduler)
{
    const int64_t now = clock_mono_ms();

    if (scheduler->is_running || scheduler->is_stopped || !scheduler->worker->store) {
        return;
    }
    scheduler->is_running = true;
    scheduler->is_starved = false;
    const uint32_t first = scheduler->next;

    for (uint32_t i = 0; i < PARTITION_COUNT; i++) {
        const uint32_t number = (first + i) % PARTITION_COUNT;
        const struct partition *partition = &scheduler->partitions[number];

        if (partition->is_claiming || partition->is_held || ready_ms(partition) > now) {
            continue;
        }
        const uint32_t free = capacity(scheduler);

        if (free == 0) {
            scheduler->is_starved = true;
            break;
        }
        claim(scheduler, number, free);
        scheduler->next = (number + 1) % PARTITION_COUNT;
    }
    scheduler->is_running = false;
    arm(scheduler);
}

int scheduler_create(struct worker *worker, struct scheduler **ret)
{
    struct scheduler *scheduler = calloc(1, sizeof(*scheduler));

    if (!scheduler) {
        return -ENOMEM;
    }
    scheduler->worker = worker;
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        scheduler->partitions[p].scheduler = scheduler;
        scheduler->partitions[p].due_ms = NEVER;
        scheduler->partitions[p].batch = BATCH_MIN;
        scheduler->partitions[p].per_workspace = PER_WORKSPACE;
    }
    uv_timer_init(worker->loop, &scheduler->timer);
    scheduler->timer.data = scheduler;
    *ret = scheduler;
    return 0;
}

void scheduler_stop(struct scheduler *scheduler)
{
    scheduler->is_stopped = true;
    uv_timer_stop(&scheduler->timer);
}

void scheduler_close(struct scheduler *scheduler)
{
    if (scheduler) {
        scheduler_stop(scheduler);
        uv_close((uv_handle_t *)&scheduler->timer, NULL);
    }
}

void scheduler_destroy(struct scheduler **scheduler)
{
    free(*scheduler);
    *scheduler = NULL;
}

void scheduler_mark(struct scheduler *scheduler, uint32_t partition)
{
    scheduler_mark_later(scheduler, partition, 0);
}

void scheduler_mark_later(struct scheduler *scheduler, uint32_t number, int64_t delay_ms)
{
    if (number >= PARTITION_COUNT || delay_ms < 0) {
        return;
    }
    struct partition *partition = &scheduler->partitions[number];

    if (partition->is_claiming && delay_ms == 0) {
        partition->is_marked_again = true;
        return;
    }
    note_due(partition, clock_mono_ms() + delay_ms);
    if (delay_ms == 0) {
        run(scheduler);
    } else {
        arm(scheduler);
    }
}

void scheduler_mark_all(struct scheduler *scheduler)
{
    const int64_t now = clock_mono_ms();

    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        note_due(&scheduler->partitions[p], now);
    }
    run(scheduler);
}

void scheduler_place_freed(struct scheduler *scheduler)
{
    bool is_wanted = scheduler->is_starved;

    if (scheduler->is_stopped) {
        return;
    }
    /* Work that waited for a workspace's own limit is in no claim's answer: it is asked for now. */
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        struct partition *partition = &scheduler->partitions[p];

        if (partition->at_limit > 0 && !partition->is_claiming &&
            count_at_limit(scheduler, p, capacity(scheduler)) < partition->at_limit) {
            note_due(partition, clock_mono_ms());
            is_wanted = true;
        }
    }
    if (is_wanted) {
        run(scheduler);
    }
}

bool scheduler_may_chain(const struct scheduler *scheduler, struct span workspace)
{
    const struct worker *worker = scheduler->worker;

    if (worker->is_draining || scheduler->is_starved) {
        return false;
    }
    if (worker->settings->durability.level == DURABILITY_REPLICAS) {
        return false; /* an outcome is not waited for by replicas, and what it hands on must be */
    }
    /* Its own place counts as free here: it would be, if it stopped. */
    return quota_for(held_used_by(worker->held, workspace) - 1, capacity(scheduler) + 1) > 0;
}

uint32_t scheduler_outstanding(const struct scheduler *scheduler)
{
    return scheduler->outstanding;
}

void scheduler_hold(struct scheduler *scheduler, uint32_t partition)
{
    scheduler->partitions[partition].is_held = true;
}

void scheduler_unhold(struct scheduler *scheduler, uint32_t number)
{
    struct partition *partition = &scheduler->partitions[number];

    partition->is_held = false;
    note_due(partition, clock_mono_ms());
    run(scheduler);
}

bool scheduler_is_claiming(const struct scheduler *scheduler, uint32_t partition)
{
    return scheduler->partitions[partition].is_claiming;
}
