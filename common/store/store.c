/* The pool: several connections, one face. Opens and closes them, tells their state, picks one for
 * each call. */
#include "common/store/store.h"

#include <errno.h>
#include <stdlib.h>

#include "common/store/store_internal.h"

static uint32_t count_up(const struct store *store)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < store->conn_count; i++) {
        count += store_conn_is_up(store->conns[i]);
    }
    return count;
}

/* Counted anew each time: one that is still down tells, too, when the reason changes. */
static void on_conn_state(struct store_conn *conn, bool is_up, enum store_result why, void *arg)
{
    struct store *store = arg;
    uint32_t before = store->conns_up;

    (void)conn;
    store->conns_up = count_up(store);
    if (is_up) {
        if (before == 0 && store->on_state) {
            store->on_state(store, true, STORE_OK, store->arg);
        }
        return;
    }
    if (store->conns_up < before && store->on_lost) {
        store->on_lost(store, store->arg);
    }
    if (store->conns_up == 0 && store->on_state) {
        store->on_state(store, false, why, store->arg);
    }
}

static void on_conn_closed(void *arg)
{
    struct store *store = arg;

    if (--store->conns_open > 0) {
        return;
    }
    if (store->closed) {
        store->closed(store->closed_arg);
    }
    free(store->conns);
    free(store);
}

int store_open(struct uv_loop_s *loop, const struct store_options *options, struct store **ret)
{
    struct store *store = calloc(1, sizeof(*store));
    int err = 0;

    if (!store) {
        return -ENOMEM;
    }
    store->conns = calloc(options->connections, sizeof(*store->conns));
    if (!store->conns) {
        free(store);
        return -ENOMEM;
    }
    store->loop = loop;
    store->durability = options->durability;
    store->dedupe_ttl_ms = options->dedupe_ttl_ms;
    store->lock_ttl_ms = options->lock_ttl_ms;
    store->events_max = options->events_max;
    store->metrics = options->metrics;
    store->on_state = options->on_state;
    store->on_lost = options->on_lost;
    store->arg = options->arg;

    struct store_conn_options conn_options = {
        .url = options->url,
        .password = options->password,
        .max_outstanding = options->max_outstanding,
        .connect_timeout_ms = options->connect_timeout_ms,
        .command_timeout_ms = options->command_timeout_ms,
        .reconnect_min_ms = 50,
        .reconnect_max_ms = 2000,
        .on_state = on_conn_state,
        .arg = store,
    };
    while (err == 0 && store->conn_count < options->connections) {
        err = store_conn_open(loop, &conn_options, &store->conns[store->conn_count]);
        if (err == 0) {
            store->conn_count++;
        }
    }
    if (err < 0) {
        store->on_state = NULL;
        store->on_lost = NULL;
        store_close(store, NULL, NULL);
        return err;
    }
    *ret = store;
    return 0;
}

void store_set_limits(struct store *store, int64_t dedupe_ttl_ms, int64_t lock_ttl_ms)
{
    store->dedupe_ttl_ms = dedupe_ttl_ms;
    store->lock_ttl_ms = lock_ttl_ms;
}

void store_close(struct store *store, void (*closed)(void *arg), void *arg)
{
    if (!store) {
        if (closed) {
            closed(arg);
        }
        return;
    }
    store->closed = closed;
    store->closed_arg = arg;
    store->on_state = NULL;
    store->on_lost = NULL;
    store->conns_open = store->conn_count + 1;
    for (uint32_t i = 0; i < store->conn_count; i++) {
        store_conn_close(store->conns[i], on_conn_closed, store);
    }
    on_conn_closed(store);
}

bool store_is_up(const struct store *store)
{
    return store->conns_up > 0;
}

uint32_t store_outstanding(const struct store *store)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < store->conn_count; i++) {
        sum += store_conn_outstanding(store->conns[i]);
    }
    return sum;
}

struct store_conn *store_pick(struct store *store)
{
    struct store_conn *best = store->conns[store->next_conn % store->conn_count];
    bool best_up = store_conn_is_up(best);

    for (uint32_t i = 1; i < store->conn_count; i++) {
        struct store_conn *conn = store->conns[(store->next_conn + i) % store->conn_count];

        if (!store_conn_is_up(conn)) {
            continue;
        }
        if (!best_up || store_conn_outstanding(conn) < store_conn_outstanding(best)) {
            best = conn;
            best_up = true;
        }
    }
    store->next_conn++;
    return best;
}
