/* The open connections and the deadlines of what each is doing. The HTTP library's own limit ends
 * idle connections only: a client that drips a byte now and then would hold its place for ever.
 * Contract §7, §11. */
#ifndef API_CONNECTION_H
#define API_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "api/problem.h"

enum connection_phase {
    CONNECTION_HEAD,      /* a new one: its first request's head is due */
    CONNECTION_BODY,      /* a request's body is due */
    CONNECTION_HEAD_LATE, /* the same two, once it was looked whether the client is still there */
    CONNECTION_BODY_LATE,
    CONNECTION_IDLE,    /* between requests; the next one's head is due */
    CONNECTION_WRITING, /* the answer is being taken away by the client */
    CONNECTION_PHASE_TIMED,
    CONNECTION_WORKING = CONNECTION_PHASE_TIMED, /* we are at work: no deadline here, the store's
                                                    calls have their own */
    CONNECTION_PHASE_COUNT,
};

struct connection {
    int fd; /* the library's; valid as long as it has not told us that it closed */
    enum connection_phase phase;
    int64_t deadline_ms;
    struct connection *before, *behind;
    bool is_cut;
};

/* One list for each phase, in the order of deadlines: all of a phase have the same time. */
struct connections {
    struct connection *first[CONNECTION_PHASE_COUNT], *last[CONNECTION_PHASE_COUNT];
    int64_t limit_ms[CONNECTION_PHASE_TIMED];
    uint32_t count;
};

void connections_set_limits(struct connections *all, int64_t head_ms, int64_t body_ms,
                            int64_t idle_ms, int64_t writing_ms);
/* NULL when out of memory. */
struct connection *connection_create(struct connections *all, int fd, int64_t now_ms);
void connection_destroy(struct connections *all, struct connection **connection);
void connection_set_phase(struct connections *all, struct connection *connection,
                          enum connection_phase phase, int64_t now_ms);
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
