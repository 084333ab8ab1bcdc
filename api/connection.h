/* The open connections: who gets a place, and the deadlines of what each is doing. The HTTP
 * library's own limits end idle connections only (a client that drips a byte now and then would
 * hold its place for ever), and hang up on those that are too many without a word. Contract §7,
 * §11.
 */
#ifndef API_CONNECTION_H
#define API_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "api/peers.h"
#include "api/problem.h"

struct gnutls_session_int;
struct metrics;

/* Connections beside those that hold places: their one request is answered with the reason. */
#define CONNECTIONS_REFUSED_MAX 64

enum connection_phase {
    CONNECTION_HEAD,      /* a new one: its first request's head is due */
    CONNECTION_BODY,      /* a request's body is due */
    CONNECTION_HEAD_LATE, /* the same two, once it was looked whether the client is still there */
    CONNECTION_BODY_LATE,
    CONNECTION_IDLE,    /* between requests; the next one's head is due */
    CONNECTION_WRITING, /* the answer is being taken away by the client */
    CONNECTION_REFUSED, /* it has no place; its request's head is due, soon */
    CONNECTION_PHASE_TIMED,
    CONNECTION_WORKING = CONNECTION_PHASE_TIMED, /* we are at work: no deadline here, the store's
                                                    calls have their own */
    CONNECTION_PHASE_COUNT,
};

struct connection {
    int fd; /* the library's; valid as long as it has not told us that it closed */
    struct gnutls_session_int *tls; /* the library's, too; NULL: plain */
    enum connection_phase phase;
    int64_t deadline_ms;
    struct connection *before, *behind;
    struct peer *peer; /* never NULL */
    struct connection *peer_before, *peer_behind;
    enum problem_id refusal; /* why it has no place; PROBLEM_NONE: it has one */
    bool is_cut;
};

struct connection_limits {
    int64_t head_ms, body_ms, idle_ms, writing_ms;
    uint32_t max, max_per_address; /* max_per_address 0: none of its own */
};

/* One list for each phase, in the order of deadlines: all of a phase have the same time. */
struct connections {
    struct connection *first[CONNECTION_PHASE_COUNT], *last[CONNECTION_PHASE_COUNT];
    int64_t limit_ms[CONNECTION_PHASE_TIMED];
    uint32_t max, max_per_address;
    struct peers peers;
    struct metrics *metrics; /* counts who ran into a limit; NULL: not */
    uint32_t count;          /* open, whatever they do */
    uint32_t places;         /* of these: hold a place */
    uint32_t refused;        /* and: are told that there is none */
};

void connections_init(struct connections *all, const struct connection_limits *limits,
                      struct metrics *metrics);
/* Before one is accepted. False: it is closed without a word, even telling why is too much (and is
 * counted). `address` NULL or of AF_UNIX: a local socket. */
bool connections_may_come(struct connections *all, const struct sockaddr *address);
/* One was accepted. When all places are taken, the peer that holds most of them gives one up if it
 * waits for that peer (between requests, or for the rest of one); else the newcomer is refused
 * (`refusal`). NULL when out of memory. */
struct connection *connection_create(struct connections *all, int fd,
                                     struct gnutls_session_int *tls, const struct sockaddr *address,
                                     int64_t now_ms);
void connection_destroy(struct connections *all, struct connection **connection);
void connection_set_phase(struct connections *all, struct connection *connection,
                          enum connection_phase phase, int64_t now_ms);
/* The first line of a request has come. */
void connection_begins_request(struct connections *all, struct connection *connection,
                               int64_t now_ms);
/* Ends a connection at once; `problem` is told where nothing of the library's own can be under way
 * (a request whose body still comes in), PROBLEM_NONE tells nothing. */
void connection_cut(struct connections *all, struct connection *connection,
                    enum problem_id problem);
/* A stream begins: bounds what the kernel keeps for a client that does not read (and how long). */
void connection_bound_stream(const struct connection *connection);
/* Cuts those past their deadline; with 408 where a request has begun. Returns when the next one is
 * due, INT64_MAX: none. */
int64_t connections_expire(struct connections *all, int64_t now_ms);
/* Drain: cuts those that wait for a request. */
void connections_cut_idle(struct connections *all);

#endif
