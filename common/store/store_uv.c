/* Bridge between a hiredis context and a libuv loop. Differs from the adapter that hiredis ships in
 * three ways: error events are passed on (theirs drops them, so a refused connection is never
 * reported); commands are flushed once per loop turn without asking the kernel whether the socket
 * is writable (measured: a lone PING takes 12 us instead of 17; writing even earlier, from within
 * the call, gains nothing more); its memory outlives the context by one turn. */
#include "common/store/store_uv.h"

#include <errno.h>
#include <hiredis/async.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <uv.h>

struct store_uv {
    struct redisAsyncContext *ac; /* NULL once hiredis took the bridge down */
    uv_poll_t poll;
    uv_prepare_t
        flush; /* writes what this turn's callbacks appended, just before the loop would sleep */
    uv_idle_t
        awake;  /* keeps the loop from sleeping if `flush` was armed after its place in the turn */
    int events; /* what `poll` waits for */
    bool is_writing;
    bool is_tls;
    int open_handles;
    void (*on_stuck)(void *arg);
    void (*on_gone)(void *arg);
    void *arg;
};

static void on_poll(uv_poll_t *poll, int status, int events);

/* Each change costs two system calls in libuv 1.44: only real ones are made. */
static void watch(struct store_uv *bridge, int events)
{
    if (events == bridge->events) {
        return;
    }
    bridge->events = events;
    if (events == 0) {
        uv_poll_stop(&bridge->poll);
    } else {
        /* Fails only if another handle watched the descriptor, which is ours alone. */
        (void)uv_poll_start(&bridge->poll, events, on_poll);
    }
}

static void write_now(struct store_uv *bridge)
{
    bridge->is_writing = true;
    redisAsyncHandleWrite(bridge->ac);
    bridge->is_writing = false;
}

/* hiredis asserts that nothing but an error arrives unasked: a strange server could abort us. Its
 * bytes are looked at only when no answer is due, that is, never in normal operation. */
static bool is_unasked(const struct store_uv *bridge)
{
    char first;

    /* With TLS it has proven who it is, and what arrives unasked may be a matter of TLS itself. */
    return !bridge->is_tls && (bridge->ac->c.flags & REDIS_CONNECTED) &&
           !bridge->ac->replies.head &&
           recv(bridge->ac->c.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first != '-';
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct store_uv *bridge = poll->data;

    if (status < 0) {
        /* libuv has stopped the handle. Reading or writing makes hiredis find the error itself. */
        bridge->events = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if ((events & UV_READABLE) && is_unasked(bridge)) {
        bridge->on_stuck(bridge->arg);
        return;
    }
    if (events & UV_READABLE) {
        redisAsyncHandleRead(bridge->ac);
    }
    if (bridge->ac && (events & UV_WRITABLE)) {
        write_now(bridge);
    }
    if (bridge->ac && status < 0) {
        bridge->on_stuck(bridge->arg);
    }
}

static void on_awake(uv_idle_t *awake)
{
    (void)awake;
}

static void on_flush(uv_prepare_t *flush)
{
    struct store_uv *bridge = flush->data;

    uv_prepare_stop(&bridge->flush);
    uv_idle_stop(&bridge->awake);
    if (bridge->ac) {
        write_now(bridge);
    }
}

static void add_read(void *arg)
{
    struct store_uv *bridge = arg;

    watch(bridge, bridge->events | UV_READABLE);
}

static void del_read(void *arg)
{
    struct store_uv *bridge = arg;

    watch(bridge, bridge->events & ~UV_READABLE);
}

static void add_write(void *arg)
{
    struct store_uv *bridge = arg;

    /* Before the connection stands only the kernel may say "writable": hiredis takes that for
     * "connected". While writing, it means that the socket is full. */
    if (bridge->is_writing || !(bridge->ac->c.flags & REDIS_CONNECTED)) {
        watch(bridge, bridge->events | UV_WRITABLE);
    } else if (!(bridge->events & UV_WRITABLE)) {
        (void)uv_prepare_start(&bridge->flush, on_flush);
        (void)uv_idle_start(&bridge->awake, on_awake);
    }
}

static void del_write(void *arg)
{
    struct store_uv *bridge = arg;

    watch(bridge, bridge->events & ~UV_WRITABLE);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct store_uv *bridge = handle->data;

    if (--bridge->open_handles == 0) {
        bridge->on_gone(bridge->arg);
        free(bridge);
    }
}

static void clean_up(void *arg)
{
    struct store_uv *bridge = arg;

    bridge->ac = NULL;
    uv_close((uv_handle_t *)&bridge->poll, on_handle_closed);
    uv_close((uv_handle_t *)&bridge->flush, on_handle_closed);
    uv_close((uv_handle_t *)&bridge->awake, on_handle_closed);
}

int store_uv_attach(struct redisAsyncContext *ac, struct uv_loop_s *loop, bool is_tls,
                    void (*on_stuck)(void *arg), void (*on_gone)(void *arg), void *arg)
{
    struct store_uv *bridge = calloc(1, sizeof(*bridge));

    if (!bridge) {
        return -ENOMEM;
    }
    int err = uv_poll_init(loop, &bridge->poll, ac->c.fd);

    if (err < 0) {
        free(bridge);
        return err;
    }
    (void)uv_prepare_init(loop, &bridge->flush); /* these two can't fail */
    (void)uv_idle_init(loop, &bridge->awake);
    bridge->poll.data = bridge->flush.data = bridge->awake.data = bridge;
    bridge->open_handles = 3;
    bridge->ac = ac;
    bridge->is_tls = is_tls;
    bridge->on_stuck = on_stuck;
    bridge->on_gone = on_gone;
    bridge->arg = arg;
    ac->ev.data = bridge;
    ac->ev.addRead = add_read;
    ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write;
    ac->ev.delWrite = del_write;
    ac->ev.cleanup = clean_up;
    return 0;
}
