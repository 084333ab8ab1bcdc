/* Acceptance of several messages of one partition in one script run (accept_many.lua): in order,
 * each as store_accept would take it alone, for a third of the store's time. Loop thread only.
 * Contract §2, §3. */
#ifndef COMMON_STORE_STORE_ACCEPT_MANY_H
#define COMMON_STORE_STORE_ACCEPT_MANY_H

#include "common/store/store.h"

#define ACCEPT_MANY_MAX   64
#define ACCEPT_MANY_BYTES (256U << 10) /* or one message that is longer */

struct accept_many; /* a call being put together */

struct accept_many_item {
    /* STORE_ERROR: what the store holds in its session can't be worked with. Neither this one nor
     * any behind it in its session was accepted. */
    enum store_result result;
    struct accept_answer answer; /* if STORE_OK; id empty: accepted, pending, under its own */
};
/* STORE_OK: one item for each, in order (look at `count`: the store's answer is not trusted). Else
 * the script ran as a whole, or not at all, or will yet: repeated in order they are all found out.
 */
typedef void store_accept_many_cb(enum store_result result, const struct accept_many_item *items,
                                  size_t count, void *arg);

/* NULL when out of memory. End it by sending or destroying it. */
struct accept_many *accept_many_create(struct store *store, uint32_t partition);
void accept_many_destroy(struct accept_many **many_ptr);
/* Adds a message of that partition behind the others; everything is copied. 0, -ENOSPC: it is full
 * (never while it is empty), -ENOMEM. After an error it is as before. */
int accept_many_add(struct accept_many *many, const struct accept_request *request);
/* Takes ownership. `cb` runs once, never before this call returned. */
void accept_many_send(struct accept_many **many_ptr, store_accept_many_cb *cb, void *arg);

#endif
