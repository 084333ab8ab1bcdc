/* The calls of one connection: written, answered, repeated after NOSCRIPT, limited in number and
 * time. Callbacks run from hiredis when an answer came, and from the idle handle `teller` for
 * everything else: never from within the call itself, so they may issue calls and close the
 * connection. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/store/reply_copy.h"
#include "common/store/store_conn_internal.h"

#define WAIT_MS_DEFAULT 1000

struct store_call {
    struct store_call *next;
    struct store_conn *conn;
    store_reply_cb *cb;
    void *arg;
    const struct store_script
        *script; /* NULL: a plain command, or a script that was repeated already */
    uint32_t replicas;
    int replies_due; /* 2: the script's, then WAIT's */
    uint64_t number;
    int64_t started_ms;
    enum store_result result;
    bool is_unknown;         /* NOSCRIPT */
    struct redisReply *kept; /* until WAIT answers */
    size_t command_len;
    char command[]; /* as it goes over the wire; kept for the repetition */
};

/* ---- lists
 * --------------------------------------------------------------------------------------------------
 */

static void list_push(struct call_list *list, struct store_call *call)
{
    call->next = NULL;
    if (list->tail) {
        list->tail->next = call;
    } else {
        list->head = call;
    }
    list->tail = call;
}

static struct store_call *list_pop(struct call_list *list)
{
    struct store_call *call = list->head;

    if (call) {
        list->head = call->next;
        if (!list->head) {
            list->tail = NULL;
        }
    }
    return call;
}

/* ---- the wire format: done here because one allocation then holds the call and its command
 * ---------------------- */

static size_t bulk_room(size_t len)
{
    return len + sizeof("$18446744073709551615\r\n\r\n");
}

/* "$123\r\n": by hand, for it is written a dozen times per call. */
static char *put_head(char *at, char mark, size_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *at++ = mark;
    while (count > 0) {
        *at++ = digits[--count];
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *put_bulk(char *at, const char *bytes, size_t len)
{
    at = put_head(at, '$', len);
    if (len > 0) {
        memcpy(at, bytes, len);
        at += len;
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

/* `lead` stands before `argv`; together they are the command. NULL when out of memory. */
static struct store_call *call_create(struct store_conn *conn, size_t lead_count,
                                      const struct span *lead, size_t argc, const struct span *argv,
                                      store_reply_cb *cb, void *arg)
{
    size_t room = bulk_room(0);

    for (size_t i = 0; i < lead_count; i++) {
        room += bulk_room(lead[i].len);
    }
    for (size_t i = 0; i < argc; i++) {
        room += bulk_room(argv[i].len);
    }
    struct store_call *call = malloc(sizeof(*call) + room);

    if (!call) {
        return NULL;
    }
    *call = (struct store_call){.conn = conn, .cb = cb, .arg = arg};
    char *at = put_head(call->command, '*', lead_count + argc);

    for (size_t i = 0; i < lead_count; i++) {
        at = put_bulk(at, lead[i].ptr, lead[i].len);
    }
    for (size_t i = 0; i < argc; i++) {
        at = put_bulk(at, argv[i].ptr, argv[i].len);
    }
    call->command_len = (size_t)(at - call->command);
    return call;
}

/* ---- telling
 * ------------------------------------------------------------------------------------------------
 */

static void fail_later(struct store_call *call, enum store_result result)
{
    struct store_conn *conn = call->conn;

    reply_copy_destroy(&call->kept);
    call->result = result;
    list_push(&conn->failed, call);
    (void)uv_idle_start(&conn->teller, calls_on_teller);
}

void calls_on_teller(uv_idle_t *teller)
{
    struct store_conn *conn = teller->data;
    struct call_list failed = conn->failed;
    struct store_call *call;

    /* Only those there are now: a callback that calls again is told in the next turn, so that no
     * turn is endless. */
    conn->failed = (struct call_list){0};
    while ((call = list_pop(&failed))) {
        store_reply_cb *cb = call->cb;
        void *arg = call->arg;
        enum store_result result = call->result;

        free(call);
        cb(result, NULL, arg);
    }
    if (conn->failed.head) {
        return;
    }
    if (conn->state == CONN_CLOSING) {
        conn_finish_close(conn);
    } else {
        uv_idle_stop(&conn->teller);
    }
}

/* The call left `in_flight`; the callback may close the connection: nothing is touched after it. */
static void answer(struct store_call *call, enum store_result result,
                   const struct redisReply *reply)
{
    store_reply_cb *cb = call->cb;
    void *arg = call->arg;
    struct redisReply *kept = call->kept;

    free(call);
    cb(result, result == STORE_OK || result == STORE_ERROR ? reply : NULL, arg);
    reply_copy_destroy(&kept);
}

/* ---- sending
 * ------------------------------------------------------------------------------------------------
 */

static void on_reply(struct redisAsyncContext *ac, void *arg, void *call_arg);

/* Less than the command's own limit, so that WAIT answers before the connection is given up. */
static long long wait_ms(const struct store_conn *conn)
{
    int64_t half = conn->command_timeout_ms / 2;

    return half > 0 ? half : WAIT_MS_DEFAULT;
}

static void transmit(struct store_call *call)
{
    struct store_conn *conn = call->conn;

    if (redisAsyncFormattedCommand(conn->ac, on_reply, call, call->command, call->command_len) !=
        REDIS_OK) {
        fail_later(call, STORE_AWAY); /* the context is dying */
        return;
    }
    call->replies_due = 1;
    if (call->replicas > 0) {
        call->replies_due = 2;
        (void)redisAsyncCommand(conn->ac, on_reply, call, "WAIT %u %lld", call->replicas,
                                wait_ms(conn));
    }
    call->started_ms = clock_mono_ms();
    call->number = ++conn->next_number; /* from 1: overdue_number 0 means none */
    list_push(&conn->in_flight, call);
    conn->outstanding++;
    if (conn->command_timeout_ms > 0 && !uv_is_active((uv_handle_t *)&conn->timer)) {
        conn_arm(conn, conn->command_timeout_ms);
    }
}

static void on_loaded(struct redisAsyncContext *ac, void *reply, void *script)
{
    struct store_conn *conn = ac->data;

    (void)reply; /* if it failed, the repeated call says so */
    if (conn->ac == ac) {
        conn->is_loading[(uintptr_t)script] = false;
    }
}

/* Where `is_loading` notes it. A script from elsewhere (tests) has no place of its own and is
 * loaded each time. */
static size_t loading_index(const struct store_script *script)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        if (script == &store_scripts[i]) {
            return i;
        }
    }
    return SCRIPT_COUNT;
}

/* The server forgot its scripts (SCRIPT FLUSH): the text, and right behind it the call again. */
static void repeat(struct store_call *call)
{
    struct store_conn *conn = call->conn;
    const struct store_script *script = call->script;
    size_t index = loading_index(script);

    if (conn->state != CONN_UP) {
        fail_later(call, STORE_AWAY);
        return;
    }
    if (!conn->is_loading[index]) {
        conn->is_loading[index] = index < SCRIPT_COUNT;
        (void)redisAsyncCommand(conn->ac, on_loaded, (void *)(uintptr_t)index, "SCRIPT LOAD %b",
                                script->text, script->text_len);
    }
    call->script = NULL;
    call->is_unknown = false;
    transmit(call);
}

/* ---- answers
 * ------------------------------------------------------------------------------------------------
 */

static bool says_noscript(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && reply->len >= 8 &&
           memcmp(reply->str, "NOSCRIPT", 8) == 0;
}

static void read_first(struct store_call *call, const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        call->result = store_result_from_error(reply->str, reply->len);
        call->is_unknown = call->script && says_noscript(reply);
    } else {
        call->result = STORE_OK;
    }
    if (call->replies_due > 0 && !call->is_unknown) {
        call->kept = reply_copy_create(reply);
        if (!call->kept) {
            call->result =
                STORE_CUT; /* out of memory: it may have happened, as if the answer had been lost */
        }
    }
}

/* WAIT's answer. It says nothing about a script that failed. */
static void read_wait(struct store_call *call, const struct redisReply *reply)
{
    bool is_durable =
        reply->type == REDIS_REPLY_INTEGER && reply->integer >= (long long)call->replicas;

    if (call->result == STORE_OK && !is_durable) {
        call->result = STORE_NOT_DURABLE;
    }
}

static void on_reply(struct redisAsyncContext *ac, void *arg, void *call_arg)
{
    const struct redisReply *reply = arg;
    struct store_call *call = call_arg;
    struct store_conn *conn = call->conn;
    bool is_first = call->replies_due == (call->replicas > 0 ? 2 : 1);

    (void)ac;
    call->replies_due--;
    if (reply && is_first) {
        read_first(call, reply);
    } else if (reply) {
        read_wait(call, reply);
    }
    if (call->replies_due > 0) {
        return;
    }
    list_pop(&conn->in_flight); /* answers come in order: it is this one */
    conn->outstanding--;
    if (!reply) {
        bool is_late = conn->cut_why == STORE_TIMEOUT && conn->command_timeout_ms > 0 &&
                       clock_mono_ms() - call->started_ms >= conn->command_timeout_ms;

        fail_later(call, is_late ? STORE_TIMEOUT : STORE_CUT);
        return;
    }
    if (call->is_unknown) {
        repeat(call);
        return;
    }
    answer(call, call->result, call->replicas > 0 ? call->kept : reply);
}

void calls_check_overdue(struct store_conn *conn)
{
    const struct store_call *oldest = conn->in_flight.head;

    if (!oldest) {
        return;
    }
    int64_t left = oldest->started_ms + conn->command_timeout_ms - clock_mono_ms();

    if (left > 0) {
        conn_arm(conn, left);
        return;
    }
    /* If this process was slow, its answer may lie in the socket: look once more after the loop has
     * read. */
    if (conn->overdue_number != oldest->number) {
        conn->overdue_number = oldest->number;
        conn_arm(conn, 1);
        return;
    }
    conn_fail(conn, STORE_TIMEOUT);
}

/* ---- the two calls
 * -------------------------------------------------------------------------------------------- */

/* Only a call that fails needs memory before it can say so: if even that little is missing, restart
 * is the tested path. */
static void refuse(struct store_conn *conn, enum store_result why, store_reply_cb *cb, void *arg)
{
    struct store_call *call = call_create(conn, 0, NULL, 0, NULL, cb, arg);

    if (!call) {
        abort();
    }
    fail_later(call, why);
}

static void send_call(struct store_conn *conn, struct store_call *call, store_reply_cb *cb,
                      void *arg)
{
    if (!call) {
        refuse(conn, STORE_FULL, cb, arg);
        return;
    }
    transmit(call);
}

static bool is_ready(struct store_conn *conn, store_reply_cb *cb, void *arg)
{
    if (conn->state != CONN_UP) {
        refuse(conn, STORE_AWAY, cb, arg);
        return false;
    }
    if (conn->outstanding >= conn->max_outstanding) {
        refuse(conn, STORE_FULL, cb, arg);
        return false;
    }
    return true;
}

void store_conn_command(struct store_conn *conn, size_t argc, const struct span *argv,
                        store_reply_cb *cb, void *arg)
{
    if (is_ready(conn, cb, arg)) {
        send_call(conn, call_create(conn, 0, NULL, argc, argv, cb, arg), cb, arg);
    }
}

void store_conn_eval(struct store_conn *conn, const struct store_script *script, struct span key,
                     size_t argc, const struct span *argv, uint32_t replicas, store_reply_cb *cb,
                     void *arg)
{
    const struct span lead[] = {{"EVALSHA", 7}, {script->sha1, 40}, {"1", 1}, key};

    if (!is_ready(conn, cb, arg)) {
        return;
    }
    struct store_call *call = call_create(conn, 4, lead, argc, argv, cb, arg);

    if (call) {
        call->script = script;
        call->replicas = replicas;
    }
    send_call(conn, call, cb, arg);
}
