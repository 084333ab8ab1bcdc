/* Bookkeeping of connections; cuts with shutdown(2), so that the library notices and cleans up as
 * it does for any client that goes away. Never closes a descriptor: those are the library's. */
#include "api/connection.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void unlink_from(struct connections *all, struct connection *c)
{
    if (c->before) {
        c->before->behind = c->behind;
    } else {
        all->first[c->phase] = c->behind;
    }
    if (c->behind) {
        c->behind->before = c->before;
    } else {
        all->last[c->phase] = c->before;
    }
}

static void append(struct connections *all, struct connection *c, enum connection_phase phase,
                   int64_t now_ms)
{
    c->phase = phase;
    c->deadline_ms = phase < CONNECTION_PHASE_TIMED ? now_ms + all->limit_ms[phase] : INT64_MAX;
    c->behind = NULL;
    c->before = all->last[phase];
    if (c->before) {
        c->before->behind = c;
    } else {
        all->first[phase] = c;
    }
    all->last[phase] = c;
}

struct connection *connection_create(struct connections *all, int fd, int64_t now_ms)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (c) {
        c->fd = fd;
        append(all, c, CONNECTION_HEAD, now_ms);
        all->count++;
    }
    return c;
}

void connection_destroy(struct connections *all, struct connection **connection)
{
    if (*connection) {
        unlink_from(all, *connection);
        all->count--;
        free(*connection);
        *connection = NULL;
    }
}

void connection_set_phase(struct connections *all, struct connection *c,
                          enum connection_phase phase, int64_t now_ms)
{
    if (!c->is_cut) {
        unlink_from(all, c);
        append(all, c, phase, now_ms);
    }
}

static void cut(struct connections *all, struct connection *c, bool say_why)
{
    static const char answer[] =
        "HTTP/1.1 408 Request Timeout\r\n"
        "Connection: close\r\n"
        "Content-Type: application/problem+json\r\n"
        "Content-Length: 164\r\n\r\n"
        "{\"type\":\"/problems/request_timeout\",\"title\":\"The request came in too slowly\","
        "\"status\":408,\"code\":\"request_timeout\",\"detail\":\"Send it again, at once.   \"}";

    if (say_why) {
        /* The library answers only what it has read whole, so this goes around it: nothing of its
         * own is under way on a connection whose request is still coming in. If it does not fit,
         * the client learns less. */
        (void)send(c->fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    (void)shutdown(c->fd, SHUT_RDWR);
    /* Out of the timed lists: the library closes it in one of its next turns. */
    unlink_from(all, c);
    append(all, c, CONNECTION_WORKING, 0);
    c->is_cut = true;
}

int64_t connections_expire(struct connections *all, int64_t now_ms)
{
    int64_t next = INT64_MAX;

    for (unsigned phase = 0; phase < CONNECTION_PHASE_TIMED; phase++) {
        while (all->first[phase] && all->first[phase]->deadline_ms <= now_ms) {
            cut(all, all->first[phase], phase == CONNECTION_HEAD || phase == CONNECTION_BODY);
        }
        if (all->first[phase] && all->first[phase]->deadline_ms < next) {
            next = all->first[phase]->deadline_ms;
        }
    }
    return next;
}

void connections_cut_idle(struct connections *all)
{
    while (all->first[CONNECTION_IDLE]) {
        cut(all, all->first[CONNECTION_IDLE], false);
    }
    while (all->first[CONNECTION_HEAD]) {
        cut(all, all->first[CONNECTION_HEAD], false);
    }
}
