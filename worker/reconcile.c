/* One partition after the other is held back from claims, looked at, and let go. A claim that is
 * outstanding comes back first: what it took would otherwise look like nobody's. */
#include "worker/reconcile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/core/buf.h"
#include "common/core/keys.h"
#include "worker/claim.h"
#include "worker/delivery.h"
#include "worker/held.h"
#include "worker/worker.h"

#define RECOVER_LIST_MAX    (16U << 10)
#define PARTITIONS_PER_LOOK 4 /* with a heartbeat of 500 ms: all of them in 8 s */

enum look {
    LOOK_DONE,
    LOOK_WANTED, /* waits for its claim to come back, or for the store */
    LOOK_RUNNING,
};

struct reconcile {
    struct worker *worker;
    struct token_parts own;
    struct lock_token prefix;
    uint32_t next; /* where reconcile_look_around goes on */
    struct one {
        struct reconcile *reconcile;
        enum look look;
        bool is_wanted_again;
    } partitions[PARTITION_COUNT];
};

static void look(struct one *one);

static void on_given_back(enum store_result result, bool yes, void *arg)
{
    (void)result; /* a failure means a lost connection, and that starts the next look */
    (void)yes;
    (void)arg;
}

static void on_taken_back(enum store_result result, struct span flags, void *arg)
{
    (void)flags;
    on_given_back(result, true, arg);
}

static void take_back(struct store *store, const struct held_session *held)
{
    struct buf list;

    buf_init(&list, RECOVER_LIST_MAX);
    if (store_recover_list(&list, held->workspace, held->session, held->token) == 0) {
        store_recover(store, partition_of(held->workspace.ptr, held->workspace.len),
                      (struct span){list.bytes, list.len}, on_taken_back, NULL);
    }
    buf_done(&list);
}

static void judge(struct worker *worker, const struct reconcile *reconcile,
                  const struct held_session *held)
{
    struct token_parts token;

    if (lock_token_parse(held->token.ptr, held->token.len, &token) < 0 ||
        token.generation != reconcile->own.generation || token.slot != reconcile->own.slot ||
        held->token.len >= LOCK_TOKEN_MAX) {
        return; /* somebody else's, past its deadline: the supervisor's */
    }
    if (token.incarnation != reconcile->own.incarnation) {
        log_info("recovering a session of an earlier process in this slot", "slot",
                 LOG_I64(token.slot));
        take_back(worker->store, held);
        return;
    }
    const struct delivery *delivery = held_find(worker->held, held->workspace, held->session);

    if (delivery && span_equal(span_of(delivery->token.text), held->token)) {
        return;
    }
    struct claim_ref ref = {.workspace = held->workspace, .session = held->session};

    memcpy(ref.token.text, held->token.ptr, held->token.len);
    log_info("giving back a claim whose answer was lost", "slot", LOG_I64(token.slot));
    store_release(worker->store, &ref, 0, on_given_back, NULL);
}

static void on_held(enum store_result result, const struct held_session *held, size_t count,
                    void *arg)
{
    struct one *one = arg;
    struct worker *worker = one->reconcile->worker;

    for (size_t i = 0; i < count; i++) {
        judge(worker, one->reconcile, &held[i]);
    }
    one->look = LOOK_DONE;
    if (result == STORE_ERROR || result == STORE_PROTOCOL) {
        log_warn("a partition's locks cannot be read; what a lost answer left there waits for its "
                 "deadline",
                 "partition", LOG_I64(one - one->reconcile->partitions), "result",
                 store_result_name(result));
    } else if (result != STORE_OK || one->is_wanted_again) {
        one->is_wanted_again = false;
        one->look = LOOK_WANTED; /* reconcile_retry */
        return;
    }
    scheduler_unhold(worker->scheduler, (uint32_t)(one - one->reconcile->partitions));
}

static void look(struct one *one)
{
    struct reconcile *reconcile = one->reconcile;
    struct worker *worker = reconcile->worker;
    const uint32_t partition = (uint32_t)(one - reconcile->partitions);

    scheduler_hold(worker->scheduler, partition);
    if (scheduler_is_claiming(worker->scheduler, partition)) {
        return;
    }
    one->look = LOOK_RUNNING;
    store_held(worker->store, partition, span_of(reconcile->prefix.text), on_held, one);
}

void reconcile_partition(struct reconcile *reconcile, uint32_t partition)
{
    struct one *one = &reconcile->partitions[partition];

    if (one->look == LOOK_RUNNING) {
        one->is_wanted_again = true;
        return;
    }
    one->look = LOOK_WANTED;
    look(one);
}

void reconcile_start(struct reconcile *reconcile)
{
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        reconcile_partition(reconcile, p);
    }
}

void reconcile_retry(struct reconcile *reconcile)
{
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        if (reconcile->partitions[p].look == LOOK_WANTED) {
            look(&reconcile->partitions[p]);
        }
    }
}

void reconcile_look_around(struct reconcile *reconcile)
{
    for (uint32_t i = 0; i < PARTITIONS_PER_LOOK; i++) {
        if (reconcile->partitions[reconcile->next].look == LOOK_DONE) {
            reconcile_partition(reconcile, reconcile->next);
        }
        reconcile->next = (reconcile->next + 1) % PARTITION_COUNT;
        if (reconcile->next == 0) {
            metrics_loop_ran(reconcile->worker->metrics, LABEL_LOOP_RECONCILE, clock_wall_ms());
        }
    }
}

void reconcile_claim_came_back(struct reconcile *reconcile, uint32_t partition)
{
    if (reconcile->partitions[partition].look == LOOK_WANTED) {
        look(&reconcile->partitions[partition]);
    }
}

int reconcile_create(struct worker *worker, struct reconcile **ret)
{
    struct reconcile *reconcile = calloc(1, sizeof(*reconcile));

    if (!reconcile) {
        return -ENOMEM;
    }
    reconcile->worker = worker;
    reconcile->own = (struct token_parts){
        .generation = worker->args.generation,
        .slot = worker->args.slot,
        .incarnation = worker->args.incarnation,
    };
    memcpy(reconcile->own.node, worker->args.node, sizeof(reconcile->own.node));
    reconcile->prefix = lock_token_slot_prefix(&reconcile->own);
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        reconcile->partitions[p].reconcile = reconcile;
    }
    *ret = reconcile;
    return 0;
}

void reconcile_destroy(struct reconcile **reconcile)
{
    free(*reconcile);
    *reconcile = NULL;
}
