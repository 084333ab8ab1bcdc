/* The life of one connection: resolve, connect, handshake (AUTH, SELECT, name, scripts), backoff,
 * close. hiredis frees its context itself after a failed connect and after the disconnect callback:
 * `ac` is dropped there and touched no more. */
#include "common/store/store_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/backoff.h"
#include "common/store/store_conn_internal.h"
#include "common/store/store_uv.h"

/* A running resolution. It can't be stopped once a thread works on it, so it may outlive its
 * connection. */
struct resolving {
    uv_getaddrinfo_t request;
    struct store_conn *conn; /* NULL: nobody waits any more */
};

enum handshake_step {
    STEP_AUTH,
    STEP_SELECT,
    STEP_NAME,
    STEP_KNOWN,  /* which scripts does the server know? */
    STEP_SCRIPT, /* + script_id */
};

static void on_timer(uv_timer_t *timer);
static void try_next_address(struct store_conn *conn, enum store_result why);

void conn_arm(struct store_conn *conn, int64_t delay_ms)
{
    (void)uv_timer_start(&conn->timer, on_timer, (uint64_t)delay_ms,
                         0); /* fails only on a closing handle */
}

/* Calls back: nothing of `conn` is touched afterwards by whoever called this. */
static void tell(struct store_conn *conn, bool is_up, enum store_result why)
{
    if (conn->has_told && conn->told == why) {
        return;
    }
    conn->has_told = true;
    conn->told = why;
    if (conn->on_state) {
        conn->on_state(conn, is_up, why, conn->arg);
    }
}

static void free_addresses(struct store_conn *conn)
{
    uv_freeaddrinfo(conn->addresses);
    conn->addresses = conn->next_address = NULL;
}

static void abandon_resolving(struct store_conn *conn)
{
    if (conn->resolving) {
        conn->resolving->conn = NULL;
        (void)uv_cancel((uv_req_t *)&conn->resolving
                            ->request); /* too late: its callback frees it all the same */
        conn->resolving = NULL;
    }
}

/* Within a callback of hiredis it frees the context only when that returns; calls in flight are
 * failed then. */
static void drop_context(struct store_conn *conn, enum store_result why)
{
    struct redisAsyncContext *ac = conn->ac;

    conn->cut_why = why;
    conn->ac = NULL;
    if (ac) {
        redisAsyncFree(ac);
    }
}

/* Half of the delay is fixed, so that nobody hammers; half is drawn, so that not all come at once.
 */
static int64_t retry_delay(struct store_conn *conn)
{
    uint32_t random = 0;

    conn->tries++;
    (void)uv_random(NULL, NULL, &random, sizeof(random), 0, NULL); /* without it: no jitter */
    int64_t delay = backoff_delay_ms(conn->tries, conn->reconnect_min_ms, conn->reconnect_max_ms,
                                     false, random);

    return delay - (delay / 2) * (random % 1024) / 1024;
}

void conn_fail(struct store_conn *conn, enum store_result why)
{
    if (conn->state == CONN_CLOSING) {
        return;
    }
    conn->state = CONN_WAITING;
    drop_context(conn, why);
    abandon_resolving(conn);
    free_addresses(conn);
    conn_arm(conn, retry_delay(conn));
    tell(conn, false, why);
}

static void on_stuck(void *arg)
{
    struct store_conn *conn = arg;

    if (conn->state == CONN_CONNECTING) {
        try_next_address(conn, STORE_AWAY);
    } else {
        conn_fail(conn, STORE_CUT);
    }
}

static void on_context_gone(void *arg)
{
    struct store_conn *conn = arg;

    conn->contexts--;
}

/* ---- handshake
 * ---------------------------------------------------------------------------------------------- */

static void become_up(struct store_conn *conn)
{
    uv_timer_stop(&conn->timer);
    free_addresses(conn);
    conn->state = CONN_UP;
    conn->tries = 0;
    conn->cut_why = STORE_CUT;
    memset(conn->is_loading, 0, sizeof(conn->is_loading));
    tell(conn, true, STORE_OK);
}

static bool is_refused(const struct redisReply *reply)
{
    static const char refusal[] = "NOPERM";

    return reply->type == REDIS_REPLY_ERROR && reply->len >= sizeof(refusal) - 1 &&
           memcmp(reply->str, refusal, sizeof(refusal) - 1) == 0;
}

static enum store_result judge_step(size_t step, const struct redisReply *reply)
{
    /* The name only helps people reading CLIENT LIST; who must not ask what is known loads it all.
     */
    if (step == STEP_NAME || (step == STEP_KNOWN && is_refused(reply))) {
        return STORE_OK;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        enum store_result result = store_result_from_error(reply->str, reply->len);

        /* "AUTH <password> called without any password configured": the password is wrong all the
         * same. */
        return step == STEP_AUTH && result == STORE_ERROR ? STORE_NOAUTH : result;
    }
    if (step == STEP_KNOWN) {
        return reply->type == REDIS_REPLY_ARRAY && reply->elements == SCRIPT_COUNT ? STORE_OK
                                                                                   : STORE_PROTOCOL;
    }
    if (step < STEP_SCRIPT) {
        return STORE_OK;
    }
    const char *sha1 = store_scripts[step - STEP_SCRIPT].sha1;

    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, sha1) == 0 ? STORE_OK
                                                                              : STORE_PROTOCOL;
}

static void on_handshake(struct redisAsyncContext *ac, void *reply, void *step);

/* A command refused by a dying context needs no care here: its end is told in any case. */
#define STEP(conn, step, ...)                                                                      \
    ((conn)->handshake_due++,                                                                      \
     (void)redisAsyncCommand((conn)->ac, on_handshake, (void *)(uintptr_t)(step), __VA_ARGS__))

static bool is_known(const struct redisReply *reply, size_t script)
{
    return reply->type == REDIS_REPLY_ARRAY && script < reply->elements &&
           reply->element[script]->type == REDIS_REPLY_INTEGER &&
           reply->element[script]->integer == 1;
}

/* Their texts are half a megabyte: mostly the server has them from another connection. */
static void load_unknown(struct store_conn *conn, const struct redisReply *reply)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        if (!is_known(reply, i)) {
            STEP(conn, STEP_SCRIPT + i, "SCRIPT LOAD %b", store_scripts[i].text,
                 store_scripts[i].text_len);
        }
    }
}

static void ask_what_is_known(struct store_conn *conn)
{
    const char *argv[2 + SCRIPT_COUNT] = {"SCRIPT", "EXISTS"};

    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        argv[2 + i] = store_scripts[i].sha1;
    }
    conn->handshake_due++;
    (void)redisAsyncCommandArgv(conn->ac, on_handshake, (void *)(uintptr_t)STEP_KNOWN,
                                2 + SCRIPT_COUNT, argv, NULL);
}

static void on_handshake(struct redisAsyncContext *ac, void *reply, void *step)
{
    struct store_conn *conn = ac->data;

    if (!reply || conn->ac != ac) {
        return; /* given up: told elsewhere */
    }
    enum store_result result = judge_step((size_t)(uintptr_t)step, reply);

    if (result != STORE_OK) {
        conn_fail(conn, result);
        return;
    }
    if ((uintptr_t)step == STEP_KNOWN) {
        load_unknown(conn, reply);
    }
    if (--conn->handshake_due == 0) {
        become_up(conn);
    }
}

static void start_handshake(struct store_conn *conn)
{
    const struct store_url *url = &conn->url;

    conn->state = CONN_HANDSHAKE;
    conn->handshake_due = 0;
    if (url->user) {
        STEP(conn, STEP_AUTH, "AUTH %s %s", url->user, url->password ? url->password : "");
    } else if (url->password) {
        STEP(conn, STEP_AUTH, "AUTH %s", url->password);
    }
    if (url->db > 0) {
        STEP(conn, STEP_SELECT, "SELECT %u", url->db);
    }
    STEP(conn, STEP_NAME, "CLIENT SETNAME outboxd");
    ask_what_is_known(conn);
}

/* ---- connecting
 * --------------------------------------------------------------------------------------------- */

static void on_connect(const struct redisAsyncContext *ac, int status)
{
    struct store_conn *conn = ac->data;

    if (conn->ac != ac) {
        return;
    }
    if (status != REDIS_OK) {
        conn->ac = NULL; /* hiredis frees it when we return */
        try_next_address(conn, STORE_AWAY);
        return;
    }
    if (conn->tls && store_tls_start(conn->tls, conn->ac, conn->url.host) < 0) {
        conn_fail(conn, STORE_AWAY);
        return;
    }
    start_handshake(conn);
}

static void on_disconnect(const struct redisAsyncContext *ac, int status)
{
    struct store_conn *conn = ac->data;

    (void)status;
    if (conn->ac != ac) {
        return; /* we let it go ourselves */
    }
    conn->ac = NULL;
    conn_fail(conn, store_tls_was_distrusted(conn->tls) ? STORE_DISTRUSTED : STORE_CUT);
}

/* 0: under way; on_connect or the timer follows. */
static int connect_with(struct store_conn *conn, struct redisAsyncContext *ac)
{
    if (!ac) {
        return -ENOMEM;
    }
    if (ac->err != 0) {
        redisAsyncFree(ac);
        return -ECONNREFUSED;
    }
    (void)fcntl(ac->c.fd, F_SETFD,
                FD_CLOEXEC); /* hiredis does not; a child must not hold our connection open */
    if (conn->url.host) {
        (void)redisEnableKeepAlive(
            &ac->c); /* a peer that vanished is noticed even when we are idle */
    }
    int err = store_uv_attach(ac, conn->loop, conn->url.is_tls, on_stuck, on_context_gone, conn);

    if (err < 0) {
        redisAsyncFree(ac);
        return err;
    }
    conn->contexts++;
    conn->ac = ac;
    conn->state = CONN_CONNECTING;
    ac->data = conn;
    (void)redisAsyncSetDisconnectCallback(ac, on_disconnect); /* these fail only when set twice */
    (void)redisAsyncSetConnectCallback(ac, on_connect);
    conn_arm(conn, conn->connect_timeout_ms);
    return 0;
}

static void try_next_address(struct store_conn *conn, enum store_result why)
{
    drop_context(conn, why);
    while (conn->next_address) {
        const struct addrinfo *address = conn->next_address;
        char host[NI_MAXHOST], port[NI_MAXSERV];

        conn->next_address = address->ai_next;
        /* Numeric, with the scope of a link-local address; hiredis resolves it again without asking
         * anybody. */
        if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port,
                        sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
            connect_with(conn, redisAsyncConnect(host, (int)strtol(port, NULL, 10))) == 0) {
            return;
        }
    }
    conn_fail(conn, why);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct resolving *resolving = request->data;
    struct store_conn *conn = resolving->conn;

    free(resolving);
    if (!conn) {
        uv_freeaddrinfo(addresses);
        return;
    }
    conn->resolving = NULL;
    if (status < 0) {
        conn_fail(conn, STORE_AWAY);
        return;
    }
    conn->addresses = conn->next_address = addresses;
    try_next_address(conn, STORE_AWAY);
}

static int resolve(struct store_conn *conn)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct resolving *resolving = calloc(1, sizeof(*resolving));

    if (!resolving) {
        return -ENOMEM;
    }
    resolving->conn = conn;
    resolving->request.data = resolving;
    int err = uv_getaddrinfo(conn->loop, &resolving->request, on_resolved, conn->url.host,
                             conn->url.port, &hints);

    if (err < 0) {
        free(resolving);
        return err;
    }
    conn->resolving = resolving;
    conn->state = CONN_RESOLVING;
    conn_arm(conn, conn->connect_timeout_ms);
    return 0;
}

static void start_try(struct store_conn *conn)
{
    int err =
        conn->url.path ? connect_with(conn, redisAsyncConnectUnix(conn->url.path)) : resolve(conn);

    if (err < 0) {
        conn_fail(conn, STORE_AWAY);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct store_conn *conn = timer->data;

    switch (conn->state) {
    case CONN_WAITING:
        start_try(conn);
        return;
    case CONN_CONNECTING:
        try_next_address(conn, STORE_TIMEOUT);
        return;
    case CONN_RESOLVING:
    case CONN_HANDSHAKE:
        conn_fail(conn, STORE_TIMEOUT);
        return;
    case CONN_UP:
        calls_check_overdue(conn);
        return;
    case CONN_CLOSING:
        return;
    }
}

/* ---- open and close
 * ------------------------------------------------------------------------------------------- */

int store_conn_open(struct uv_loop_s *loop, const struct store_conn_options *options,
                    struct store_conn **ret)
{
    struct store_conn *conn = calloc(1, sizeof(*conn));
    struct sigaction pipe_action;
    const char *reason;

    if (!conn) {
        return -ENOMEM;
    }
    int err = store_url_parse(options->url, &conn->url, &reason);

    if (err == 0 && conn->url.is_tls) {
        err = store_tls_create(&conn->url, &conn->tls, &reason);
    }
    if (err == 0 && options->password) {
        free(conn->url.password);
        conn->url.password = strdup(options->password);
        err = conn->url.password ? 0 : -ENOMEM;
    }
    if (err < 0) {
        store_tls_destroy(&conn->tls);
        store_url_done(&conn->url);
        free(conn);
        return err;
    }
    /* hiredis writes without MSG_NOSIGNAL: a server that went away would kill a process that left
     * SIGPIPE as it is. */
    if (sigaction(SIGPIPE, NULL, &pipe_action) == 0 && pipe_action.sa_handler == SIG_DFL) {
        (void)signal(SIGPIPE, SIG_IGN);
    }
    conn->loop = loop;
    conn->max_outstanding = options->max_outstanding;
    conn->connect_timeout_ms = options->connect_timeout_ms;
    conn->command_timeout_ms = options->command_timeout_ms;
    conn->reconnect_min_ms = options->reconnect_min_ms;
    conn->reconnect_max_ms = options->reconnect_max_ms;
    conn->on_state = options->on_state;
    conn->arg = options->arg;
    (void)uv_timer_init(loop, &conn->timer); /* these two can't fail */
    (void)uv_idle_init(loop, &conn->teller);
    conn->timer.data = conn->teller.data = conn;
    conn->open_handles = 2;
    conn->state = CONN_WAITING;
    conn_arm(conn, 0); /* not now: no callback runs before the owner has the pointer */
    *ret = conn;
    return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct store_conn *conn = handle->data;
    void (*closed)(void *arg) = conn->closed;
    void *arg = conn->closed_arg;

    if (--conn->open_handles > 0) {
        return;
    }
    store_tls_destroy(&conn->tls);
    store_url_done(&conn->url);
    free(conn);
    if (closed) {
        closed(arg);
    }
}

void conn_finish_close(struct store_conn *conn)
{
    if (conn->state != CONN_CLOSING || conn->outstanding > 0 || conn->failed.head ||
        conn->contexts > 0 || uv_is_closing((uv_handle_t *)&conn->timer)) {
        return;
    }
    uv_close((uv_handle_t *)&conn->timer, on_handle_closed);
    uv_close((uv_handle_t *)&conn->teller, on_handle_closed);
}

void store_conn_close(struct store_conn *conn, void (*closed)(void *arg), void *arg)
{
    if (!conn) {
        if (closed) {
            closed(arg);
        }
        return;
    }
    if (conn->state == CONN_CLOSING) {
        return; /* the first one's `closed` will run */
    }
    conn->state = CONN_CLOSING;
    conn->on_state = NULL;
    conn->closed = closed;
    conn->closed_arg = arg;
    uv_timer_stop(&conn->timer);
    abandon_resolving(conn);
    free_addresses(conn);
    drop_context(conn, STORE_CUT);
    (void)uv_idle_start(&conn->teller, calls_on_teller);
}

bool store_conn_is_up(const struct store_conn *conn)
{
    return conn->state == CONN_UP;
}

uint32_t store_conn_outstanding(const struct store_conn *conn)
{
    return conn->outstanding;
}
