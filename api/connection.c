/* Bookkeeping of connections; cuts with shutdown(2), so that the library notices and cleans up as
 * it does for any client that goes away. Never closes a descriptor: those are the library's. */
#include "api/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#define LOOK_AFTER_MS    1000
#define STREAM_BUFFER    (32 << 10) /* the kernel doubles it */
#define STREAM_UNREAD_MS 60000      /* a client that is gone without a word is noticed */

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

static bool is_of_a_head(enum connection_phase phase)
{
    return phase == CONNECTION_HEAD || phase == CONNECTION_HEAD_LATE;
}

static bool is_to_be_looked_at(enum connection_phase phase)
{
    return phase == CONNECTION_HEAD || phase == CONNECTION_BODY;
}

static enum connection_phase late(enum connection_phase phase)
{
    return is_of_a_head(phase) ? CONNECTION_HEAD_LATE : CONNECTION_BODY_LATE;
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

/* Fails on a Unix socket, whose buffers are small anyway. */
void connection_bound_stream(const struct connection *c)
{
    const int bytes = STREAM_BUFFER;
    const unsigned unread_ms = STREAM_UNREAD_MS;

    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unread_ms, sizeof(unread_ms));
}

void connections_set_limits(struct connections *all, int64_t head_ms, int64_t body_ms,
                            int64_t idle_ms, int64_t writing_ms)
{
    all->limit_ms[CONNECTION_HEAD] = head_ms < LOOK_AFTER_MS ? head_ms : LOOK_AFTER_MS;
    all->limit_ms[CONNECTION_BODY] = body_ms < LOOK_AFTER_MS ? body_ms : LOOK_AFTER_MS;
    /* What is left after the look. */
    all->limit_ms[CONNECTION_HEAD_LATE] = head_ms - all->limit_ms[CONNECTION_HEAD];
    all->limit_ms[CONNECTION_BODY_LATE] = body_ms - all->limit_ms[CONNECTION_BODY];
    all->limit_ms[CONNECTION_IDLE] = idle_ms;
    all->limit_ms[CONNECTION_WRITING] = writing_ms;
}

/* A client's end that came together with its last bytes is no event of its own: the library, which
 * is told of changes only, waits for the rest of the request until the deadline. */
static bool has_ended(const struct connection *c)
{
    char byte;
    const ssize_t len = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

static void expire(struct connections *all, struct connection *c, int64_t now_ms)
{
    const enum connection_phase phase = c->phase;

    if (!is_to_be_looked_at(phase)) {
        const bool has_begun = phase == late(phase);

        connection_cut(all, c, has_begun ? PROBLEM_REQUEST_TIMEOUT : PROBLEM_NONE);
    } else if (has_ended(c)) {
        connection_cut(all, c, PROBLEM_NONE);
    } else {
        connection_set_phase(all, c, late(phase), now_ms);
    }
}

int64_t connections_expire(struct connections *all, int64_t now_ms)
{
    int64_t next = INT64_MAX;

    for (unsigned phase = 0; phase < CONNECTION_PHASE_TIMED; phase++) {
        while (all->first[phase] && all->first[phase]->deadline_ms <= now_ms) {
            expire(all, all->first[phase], now_ms);
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
    while (all->first[CONNECTION_HEAD_LATE]) {
        connection_cut(all, all->first[CONNECTION_HEAD_LATE], PROBLEM_NONE);
    }
}
