/* What outboxd is doing, as one line for people (`systemctl status`). Pure. */
#ifndef SUPERVISOR_STATUS_LINE_H
#define SUPERVISOR_STATUS_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define STATUS_LINE_MAX 160

enum status_line_kind {
    STATUS_LINE_WAITING_FOR_STORE,
    STATUS_LINE_RECOVERING,
    STATUS_LINE_BINDING,
    STATUS_LINE_STARTING,
    STATUS_LINE_UPGRADING,
    STATUS_LINE_SERVING,
    STATUS_LINE_NO_API,
    STATUS_LINE_STORE_AWAY,
    STATUS_LINE_DRAINING,
    STATUS_LINE_WAITING_FOR_OTHERS,
    STATUS_LINE_ENDING,
};

struct status_facts {
    enum status_line_kind kind;
    uint64_t workers;   /* that serve */
    uint64_t in_flight; /* deliveries of this node */
    bool has_counts;    /* the store was asked: the next two hold for all nodes */
    uint64_t waiting;   /* accepted, not being sent now */
    uint64_t failed;    /* status error: waiting for a person */
    int64_t away_since_wall_ms;
};

/* Writes the line, without a line end. */
void status_line(const struct status_facts *facts, char ret[STATUS_LINE_MAX]);

#endif
