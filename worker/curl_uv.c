/* The bridge. libcurl tells which sockets and which time to watch; what happened is handed back to
 * it, and finished transfers are read until there are none, after every call (its published libuv
 * example loses the last one). */
#include "worker/curl_uv.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

struct curl_uv {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    curl_uv_done_cb *done;
    void *arg;
};

struct watched {
    uv_poll_t poll;
    struct curl_uv *bridge;
    curl_socket_t socket;
};

static void read_finished(struct curl_uv *bridge)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(bridge->multi, &left))) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        /* The message dies with the removal. */
        CURL *easy = message->easy_handle;
        const CURLcode code = message->data.result;

        curl_socket_t fd = CURL_SOCKET_BAD;

        curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd); /* not known any more afterwards */
        curl_multi_remove_handle(bridge->multi, easy);
        bridge->done(easy, code, fd, bridge->arg);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watched *watched = poll->data;
    struct curl_uv *bridge = watched->bridge;
    int flags = 0;
    int running;

    if (status < 0) {
        flags = CURL_CSELECT_ERR;
    }
    if (events & UV_READABLE) {
        flags |= CURL_CSELECT_IN;
    }
    if (events & UV_WRITABLE) {
        flags |= CURL_CSELECT_OUT;
    }
    curl_multi_socket_action(bridge->multi, watched->socket, flags, &running);
    read_finished(bridge);
}

static void on_timeout(uv_timer_t *timer)
{
    struct curl_uv *bridge = timer->data;
    int running;

    curl_multi_socket_action(bridge->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    read_finished(bridge);
}

static int on_timer_change(CURLM *multi, long timeout_ms, void *arg)
{
    struct curl_uv *bridge = arg;

    (void)multi;
    if (timeout_ms < 0) {
        uv_timer_stop(&bridge->timer);
    } else {
        /* Zero is legal here: libuv runs the callback in a later turn, never from within this call.
         */
        uv_timer_start(&bridge->timer, on_timeout, (uint64_t)timeout_ms, 0);
    }
    return 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static struct watched *watch(struct curl_uv *bridge, curl_socket_t socket)
{
    struct watched *watched = calloc(1, sizeof(*watched));

    if (!watched) {
        return NULL;
    }
    watched->bridge = bridge;
    watched->socket = socket;
    if (uv_poll_init_socket(bridge->loop, &watched->poll, socket) < 0) {
        free(watched);
        return NULL;
    }
    watched->poll.data = watched;
    curl_multi_assign(bridge->multi, socket, watched);
    return watched;
}

static int on_socket_change(CURL *easy, curl_socket_t socket, int what, void *arg, void *socket_arg)
{
    struct curl_uv *bridge = arg;
    struct watched *watched = socket_arg;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watched) {
            curl_multi_assign(bridge->multi, socket, NULL);
            uv_poll_stop(&watched->poll);
            uv_close((uv_handle_t *)&watched->poll, on_poll_closed);
        }
        return 0;
    }
    if (!watched) {
        watched = watch(bridge, socket);
    }
    if (!watched) {
        return -1; /* libcurl fails the transfer */
    }
    events |= what & CURL_POLL_IN ? UV_READABLE : 0;
    events |= what & CURL_POLL_OUT ? UV_WRITABLE : 0;
    return uv_poll_start(&watched->poll, events, on_poll) < 0 ? -1 : 0;
}

int curl_uv_create(struct uv_loop_s *loop, curl_uv_done_cb *done, void *arg, struct curl_uv **ret)
{
    struct curl_uv *bridge = calloc(1, sizeof(*bridge));

    if (!bridge) {
        return -ENOMEM;
    }
    bridge->multi = curl_multi_init();
    if (!bridge->multi) {
        free(bridge);
        return -ENOMEM;
    }
    bridge->loop = loop;
    bridge->done = done;
    bridge->arg = arg;
    uv_timer_init(loop, &bridge->timer);
    bridge->timer.data = bridge;
    curl_multi_setopt(bridge->multi, CURLMOPT_SOCKETFUNCTION, on_socket_change);
    curl_multi_setopt(bridge->multi, CURLMOPT_SOCKETDATA, bridge);
    curl_multi_setopt(bridge->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
    curl_multi_setopt(bridge->multi, CURLMOPT_TIMERDATA, bridge);
    *ret = bridge;
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void curl_uv_destroy(struct curl_uv **bridge_ptr)
{
    struct curl_uv *bridge = *bridge_ptr;

    if (!bridge) {
        return;
    }
    *bridge_ptr = NULL;
    curl_multi_cleanup(bridge->multi);
    uv_close((uv_handle_t *)&bridge->timer, on_timer_closed);
}

int curl_uv_add(struct curl_uv *bridge, CURL *easy)
{
    return curl_multi_add_handle(bridge->multi, easy) == CURLM_OK ? 0 : -ENOMEM;
}

void curl_uv_give_up(struct curl_uv *bridge, CURL *easy)
{
    curl_multi_remove_handle(bridge->multi, easy);
    bridge->done(easy, CURLE_OPERATION_TIMEDOUT, CURL_SOCKET_BAD, bridge->arg);
}

CURLM *curl_uv_multi(struct curl_uv *bridge)
{
    return bridge->multi;
}
