/* What the two halves of a connection share: its life (store_conn.c: resolve, connect, handshake,
 * backoff, close) and its calls (store_conn_calls.c: send, answer, repeat, time limits). Private to
 * common/store. */
#ifndef COMMON_STORE_STORE_CONN_INTERNAL_H
#define COMMON_STORE_STORE_CONN_INTERNAL_H

#include <hiredis/async.h>
#include <uv.h>

#include "common/store/scripts.h"
#include "common/store/store_conn.h"
#include "common/store/store_tls.h"
#include "common/store/store_url.h"

/*   WAITING -> RESOLVING -> CONNECTING -> HANDSHAKE -> UP     any -> CLOSING
 *      ^______________________________________________/       (a Unix socket needs no RESOLVING) */
enum conn_state {
    CONN_WAITING, /* for the next try: `timer` */
    CONN_RESOLVING,
    CONN_CONNECTING,
    CONN_HANDSHAKE,
    CONN_UP,
    CONN_CLOSING,
};

struct call_list {
    struct store_call *head, *tail;
};

struct store_conn {
    uv_loop_t *loop;
    struct store_url url;
    struct store_tls *tls; /* NULL: the URL wants none */
    uint32_t max_outstanding;
    int64_t connect_timeout_ms, command_timeout_ms, reconnect_min_ms, reconnect_max_ms;
    void (*on_state)(struct store_conn *conn, bool is_up, enum store_result why, void *arg);
    void *arg;

    enum conn_state state;
    struct redisAsyncContext *ac; /* hiredis frees it; NULL as soon as it is given up */
    uint32_t contexts; /* attached ones that are not wholly gone, given-up ones included */
    struct resolving *resolving; /* NULL: none */
    struct addrinfo *addresses, *next_address;
    uint32_t tries; /* since it was last up */
    bool has_told;
    enum store_result told; /* the last reason given to on_state; STORE_OK: up */
    uint32_t handshake_due;
    uv_timer_t timer; /* by state: the next try, the limit of the connect or handshake, the limit of
                         the oldest call */

    struct call_list in_flight; /* in the order of their answers */
    uint32_t outstanding;       /* how many are in there */
    struct call_list failed;    /* to be told from `teller`: never from within the call, nor from
                                   hiredis' cleanup */
    uv_idle_t teller;
    enum store_result cut_why; /* STORE_TIMEOUT: overdue calls get that instead of STORE_CUT */
    uint64_t next_number, overdue_number;
    bool is_loading[SCRIPT_COUNT + 1]; /* a SCRIPT LOAD is under way on this connection */

    int open_handles;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* store_conn.c: gives the connection up for this reason and tries again later; safe in any
 * callback. */
void conn_fail(struct store_conn *conn, enum store_result why);
/* store_conn.c: starts `timer` anew. */
void conn_arm(struct store_conn *conn, int64_t delay_ms);
/* store_conn.c: CLOSING and nothing left to tell: go. */
void conn_finish_close(struct store_conn *conn);

/* store_conn_calls.c */
void calls_on_teller(uv_idle_t *teller);
/* The time limit of the oldest call may have passed. */
void calls_check_overdue(struct store_conn *conn);

#endif
