/* Claiming (claim.lua): due sessions of a partition, locked, with their first entry that may go. */
#include <errno.h>
#include <stdlib.h>

#include "common/store/store_claim_reply.h"

#define CLAIM_QUOTAS_MAX 128 /* hottest first: what does not fit is told to the script no more */

/* Returns the number of claims read into newly allocated `ret_claims`, in memory of *ret_rooms. */
static int read_claims(const struct redisReply *list, int64_t now_ms, struct claim_room **ret_rooms,
                       struct claim **ret_claims)
{
    struct claim_room *rooms = calloc(list->elements + 1, sizeof(*rooms));
    struct claim *claims = calloc(list->elements + 1, sizeof(*claims));
    int count = 0;

    if (!rooms || !claims) {
        free(rooms);
        free(claims);
        return -ENOMEM;
    }
    for (size_t i = 0; i < list->elements; i++) {
        if (claim_reply_read(list->element[i], now_ms, &rooms[count]) == 0) {
            claims[count] = rooms[count].claim;
            count++;
        }
    }
    *ret_rooms = rooms;
    *ret_claims = claims;
    return count;
}

static void read_claim(struct pending *pending, enum store_result result,
                       const struct redisReply *reply)
{
    store_claim_cb *cb = (store_claim_cb *)pending->cb;
    struct claim_answer answer = {0};
    struct claim_room *rooms = NULL;
    struct claim *claims = NULL;

    if (result == STORE_OK &&
        (!reply_is_array(reply, 4) || !reply_is_array(reply->element[3], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    int count = read_claims(reply->element[3], reply_number(reply->element[0]), &rooms, &claims);

    if (count < 0) {
        /* The sessions stay locked for us; reconciliation gives them back. */
        cb(STORE_FULL, NULL, pending->arg);
        return;
    }
    answer.claims = claims;
    answer.count = (size_t)count;
    answer.has_more = reply_number(reply->element[1]) != 0;
    answer.next_due_ms = reply_number(reply->element[2]);
    cb(STORE_OK, &answer, pending->arg);
    free(claims);
    free(rooms);
}

/* The quotas travel as pairs behind the fixed arguments, so this call has room of its own. */
void store_claim(struct store *store, const struct claim_request *request, store_claim_cb *cb,
                 void *arg)
{
    struct call call;
    size_t quotas =
        request->quota_count < CLAIM_QUOTAS_MAX ? request->quota_count : CLAIM_QUOTAS_MAX;

    call_init(&call, store, SCRIPT_CLAIM, request->partition);
    call_key(&call, "outboxdue", request->partition, (struct span){0}, (struct span){0});
    call_str(&call, request->token.text);
    call_number(&call, store->lock_ttl_ms);
    call_number(&call, request->max);
    call_number(&call, request->max_per_workspace);
    for (size_t i = 0; i < quotas; i++) {
        call_encoded(&call, request->quotas[i].workspace);
        call_number(&call, request->quotas[i].max);
    }
    /* A request must not start before its claim is as durable as a 202 (contract §2, Durability).
     */
    call.is_durable = true;
    call_send(&call, read_claim, (void (*)(void))cb, arg);
}
