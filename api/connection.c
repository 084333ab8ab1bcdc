/* Bookkeeping of connections; cuts with shutdown(2), so that the library notices and cleans up as
 * it does for any client that goes away. Never closes a descriptor: those are the library's. */
#include "api/connection.h"

#include <stdlib.h>
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

/* The library answers only what it has read whole, so this goes around it. If it does not fit, the
 * client learns less. */
static void say(int fd, enum problem_id problem)
{
    struct buf body, answer;

    buf_init(&body, 4096);
    buf_init(&answer, 8192);
    problem_write(problem, (struct span){0}, &body);
    (void)buf_appendf(&answer,
                      "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: " PROBLEM_CONTENT_TYPE
                      "\r\nContent-Length: %zu\r\n\r\n",
                      problem_get(problem)->status, problem_get(problem)->code, body.len);
    (void)buf_append(&answer, body.bytes, body.len);
    if (!answer.failed) {
        (void)send(fd, answer.bytes, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    buf_done(&answer);
    buf_done(&body);
}

void connection_cut(struct connections *all, struct connection *c, enum problem_id problem)
{
    if (c->is_cut) {
        return;
    }
    if (problem != PROBLEM_NONE) {
        say(c->fd, problem);
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
            bool has_begun = phase == CONNECTION_HEAD || phase == CONNECTION_BODY;

            connection_cut(all, all->first[phase],
                           has_begun ? PROBLEM_REQUEST_TIMEOUT : PROBLEM_NONE);
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
        connection_cut(all, all->first[CONNECTION_IDLE], PROBLEM_NONE);
    }
    while (all->first[CONNECTION_HEAD]) {
        connection_cut(all, all->first[CONNECTION_HEAD], PROBLEM_NONE);
    }
}
