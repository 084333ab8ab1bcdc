/* The sweeps' two scripts. Entries come as claims do, without a lock behind them. */
#include "common/store/store_sweep.h"

#include <stdlib.h>

#include "common/store/store_claim_reply.h"

static void read_take(struct pending *pending, enum store_result result,
                      const struct redisReply *reply)
{
    store_sweep_take_cb *cb = (store_sweep_take_cb *)pending->cb;
    struct sweep_take_answer answer = {0};
    struct claim_room *rooms = NULL;
    struct swept_entry *entries = NULL;

    if (result == STORE_OK &&
        (!reply_is_array(reply, 3) || !reply_is_array(reply->element[2], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result == STORE_OK) {
        rooms = calloc(reply->element[2]->elements + 1, sizeof(*rooms));
        entries = calloc(reply->element[2]->elements + 1, sizeof(*entries));
        result = rooms && entries ? STORE_OK : STORE_FULL;
    }
    for (size_t i = 0; result == STORE_OK && i < reply->element[2]->elements; i++) {
        const struct claim *claim = &rooms[answer.count].claim;

        if (claim_reply_read(reply->element[2]->element[i], reply_number(reply->element[0]),
                             &rooms[answer.count]) == 0) {
            entries[answer.count++] =
                (struct swept_entry){claim->workspace, claim->entry, claim->target_conf};
        }
    }
    if (result == STORE_OK) {
        answer.entries = entries;
        answer.has_more = reply_number(reply->element[1]) > 0;
        cb(STORE_OK, &answer, pending->arg);
    } else {
        cb(result, NULL, pending->arg);
    }
    free(entries);
    free(rooms);
}

void store_sweep_take(struct store *store, uint32_t partition, uint32_t max, int64_t hold_ms,
                      store_sweep_take_cb *cb, void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_SWEEP_TAKE, partition);
    call_key(&call, "outboxerr", partition, (struct span){0}, (struct span){0});
    call_number(&call, max);
    call_number(&call, hold_ms);
    call_send(&call, read_take, (void (*)(void))cb, arg);
}

static void read_settled(struct pending *pending, enum store_result result,
                         const struct redisReply *reply)
{
    store_flag_cb *cb = (store_flag_cb *)pending->cb;

    cb(result, result == STORE_OK && reply_number(reply) != 0, pending->arg);
}

void store_sweep_settle(struct store *store, const struct sweep_settle_request *request,
                        store_flag_cb *cb, void *arg)
{
    const uint32_t p = partition_of(request->workspace.ptr, request->workspace.len);
    struct call call;

    call_init(&call, store, SCRIPT_SWEEP_SETTLE, p);
    call_key(&call, "outboxe", p, request->workspace, request->id);
    call_encoded(&call, request->workspace);
    call_span(&call, request->id);
    call_number(&call, request->attempts);
    call_number(&call, request->sends);
    call_span(&call, request->error_code);
    call_str(&call, request->to == STATUS_ENDED ? "ended" : entry_status_name(request->to));
    call_number(&call, request->new_attempts);
    call_str(&call, sent_via_name(request->via));
    call_number(&call, store->dedupe_ttl_ms);
    call_send(&call, read_settled, (void (*)(void))cb, arg);
}
