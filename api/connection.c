/* Bookkeeping of connections; cuts with shutdown(2), so that the library notices and cleans up as
 * it does for any client that goes away. Never closes a descriptor: those are the library's. */
#include "api/connection.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/shm/metrics.h"

#define LOOK_AFTER_MS    1000
#define REFUSED_MS       2000
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

static void count(struct connections *all, enum label_http_limit limit)
{
    metrics_add(all->metrics, METRIC_http_limited_total, limit, 1);
}

/* ---- places ---- */

static void take_place(struct connections *all, struct connection *c)
{
    all->places++;
    c->peer->count++;
}

/* Of one that is cut or closed. */
static void give_place_up(struct connections *all, struct connection *c)
{
    if (c->is_cut) {
        return;
    }
    if (c->refusal != PROBLEM_NONE) {
        all->refused--;
        return;
    }
    all->places--;
    c->peer->count--;
}

/* The oldest of a peer's connections that waits for the peer: between requests, or (is_for_other:
 * the place goes to another) in the middle of one. */
static struct connection *find_waiting(const struct peer *peer, bool is_for_other)
{
    struct connection *waiting = NULL;

    for (struct connection *c = peer->first; c; c = c->peer_behind) {
        if (c->is_cut || c->refusal != PROBLEM_NONE) {
            continue;
        }
        if (c->phase == CONNECTION_IDLE) {
            return c;
        }
        if (is_for_other && !waiting && c->phase < CONNECTION_PHASE_TIMED) {
            waiting = c;
        }
    }
    return waiting;
}

/* All places are taken. A stranger that took them all shall not keep others out: whoever holds most
 * gives one up, never one where we are at work. */
static bool make_room(struct connections *all, const struct peer *newcomer)
{
    const struct peer *largest = peers_largest(&all->peers);

    if (!largest || largest->count <= newcomer->count) {
        largest = newcomer;
    }
    struct connection *waiting =
        find_waiting(largest, largest != newcomer && largest->count > newcomer->count + 1);

    if (!waiting) {
        return false;
    }
    count(all, LABEL_HTTP_LIMIT_CONNECTIONS);
    connection_cut(all, waiting, PROBLEM_NONE);
    return true;
}

static bool is_full_for(const struct connections *all, const struct peer *peer)
{
    return all->max_per_address > 0 && peer && peer->family != AF_UNIX &&
           peer->count >= all->max_per_address;
}

bool connections_may_come(struct connections *all, const struct sockaddr *address)
{
    const bool is_own = is_full_for(all, peers_find(&all->peers, address));

    if (all->refused < CONNECTIONS_REFUSED_MAX) {
        return true;
    }
    if (is_own) {
        count(all, LABEL_HTTP_LIMIT_CONNECTIONS_PER_ADDRESS);
        return false;
    }
    struct peer *peer = all->places < all->max ? NULL : peers_get(&all->peers, address);
    const bool may_come = all->places < all->max || (peer && make_room(all, peer));

    if (peer) {
        peers_let_go(&all->peers, peer);
    }
    if (!may_come) {
        count(all, LABEL_HTTP_LIMIT_CONNECTIONS);
    }
    return may_come;
}

static enum problem_id admit(struct connections *all, const struct peer *peer)
{
    if (is_full_for(all, peer)) {
        count(all, LABEL_HTTP_LIMIT_CONNECTIONS_PER_ADDRESS);
        return PROBLEM_TOO_MANY_FROM_ADDRESS;
    }
    if (all->places >= all->max && !make_room(all, peer)) {
        count(all, LABEL_HTTP_LIMIT_CONNECTIONS);
        return PROBLEM_TOO_MANY_CONNECTIONS;
    }
    return PROBLEM_NONE;
}

static void join_peer(struct connection *c)
{
    c->peer_before = c->peer->last;
    if (c->peer_before) {
        c->peer_before->peer_behind = c;
    } else {
        c->peer->first = c;
    }
    c->peer->last = c;
}

static void leave_peer(struct connections *all, struct connection *c)
{
    if (c->peer_before) {
        c->peer_before->peer_behind = c->peer_behind;
    } else {
        c->peer->first = c->peer_behind;
    }
    if (c->peer_behind) {
        c->peer_behind->peer_before = c->peer_before;
    } else {
        c->peer->last = c->peer_before;
    }
    peers_let_go(&all->peers, c->peer);
}

struct connection *connection_create(struct connections *all, int fd,
                                     struct gnutls_session_int *tls, const struct sockaddr *address,
                                     int64_t now_ms)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (c) {
        c->peer = peers_get(&all->peers, address);
    }
    if (!c || !c->peer) {
        free(c);
        return NULL;
    }
    c->fd = fd;
    c->tls = tls;
    c->refusal = admit(all, c->peer);
    join_peer(c);
    if (c->refusal == PROBLEM_NONE) {
        take_place(all, c);
    } else {
        all->refused++;
    }
    append(all, c, c->refusal == PROBLEM_NONE ? CONNECTION_HEAD : CONNECTION_REFUSED, now_ms);
    all->count++;
    return c;
}

void connection_destroy(struct connections *all, struct connection **connection)
{
    struct connection *c = *connection;

    *connection = NULL;
    if (c) {
        give_place_up(all, c);
        unlink_from(all, c);
        leave_peer(all, c);
        all->count--;
        free(c);
    }
}

/* ---- phases ---- */

void connection_begins_request(struct connections *all, struct connection *c, int64_t now_ms)
{
    if (c->phase == CONNECTION_IDLE) {
        connection_set_phase(all, c, CONNECTION_HEAD, now_ms);
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
static void say(const struct connection *c, enum problem_id problem)
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
    if (!answer.failed && c->tls) {
        (void)gnutls_record_send(c->tls, answer.bytes,
                                 answer.len); /* refuses before the handshake */
    } else if (!answer.failed) {
        (void)send(c->fd, answer.bytes, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
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
        say(c, problem);
    }
    (void)shutdown(c->fd, SHUT_RDWR);
    /* Out of the timed lists: the library closes it in one of its next turns. */
    unlink_from(all, c);
    append(all, c, CONNECTION_WORKING, 0);
    give_place_up(all, c);
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

void connections_init(struct connections *all, const struct connection_limits *limits,
                      struct metrics *metrics)
{
    const int64_t head_ms = limits->head_ms, body_ms = limits->body_ms;

    *all = (struct connections){
        .max = limits->max, .max_per_address = limits->max_per_address, .metrics = metrics};
    peers_init(&all->peers);
    all->limit_ms[CONNECTION_HEAD] = head_ms < LOOK_AFTER_MS ? head_ms : LOOK_AFTER_MS;
    all->limit_ms[CONNECTION_BODY] = body_ms < LOOK_AFTER_MS ? body_ms : LOOK_AFTER_MS;
    /* What is left after the look. */
    all->limit_ms[CONNECTION_HEAD_LATE] = head_ms - all->limit_ms[CONNECTION_HEAD];
    all->limit_ms[CONNECTION_BODY_LATE] = body_ms - all->limit_ms[CONNECTION_BODY];
    all->limit_ms[CONNECTION_IDLE] = limits->idle_ms;
    all->limit_ms[CONNECTION_WRITING] = limits->writing_ms;
    all->limit_ms[CONNECTION_REFUSED] = head_ms < REFUSED_MS ? head_ms : REFUSED_MS;
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

        if (phase == CONNECTION_WRITING) {
            count(all, LABEL_HTTP_LIMIT_ANSWER_TIMEOUT);
        } else if (has_begun) {
            count(all, is_of_a_head(phase) ? LABEL_HTTP_LIMIT_HEADER_TIMEOUT
                                           : LABEL_HTTP_LIMIT_BODY_TIMEOUT);
        }
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
    while (all->first[CONNECTION_REFUSED]) {
        connection_cut(all, all->first[CONNECTION_REFUSED], PROBLEM_NONE);
    }
    while (all->first[CONNECTION_HEAD]) {
        connection_cut(all, all->first[CONNECTION_HEAD], PROBLEM_NONE);
    }
    while (all->first[CONNECTION_HEAD_LATE]) {
        connection_cut(all, all->first[CONNECTION_HEAD_LATE], PROBLEM_NONE);
    }
}
