/* Keeps the service manager's status line current: collects what there is to say, tells it when it
 * changes. Costs nothing where no service manager listens. Loop thread only. */
#ifndef SUPERVISOR_STATUS_H
#define SUPERVISOR_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/store.h"
#include "supervisor/status_line.h"

struct supervisor;

/* In the supervisor, zeroed at first. */
struct status {
    bool is_told;
    enum status_line_kind kind; /* told last, and the line and when (CLOCK_MONOTONIC) */
    char line[STATUS_LINE_MAX];
    int64_t told_ms;
    int64_t away_since_wall_ms; /* 0: the store is there */

    uint32_t counting; /* answers of partitions that are still to come */
    int64_t asked_ms;
    struct counts_answer next, counts;
    bool has_counts;
};

/* Now and then, a few times a second. Tells a new kind of line at once, new figures every few
 * seconds. */
void status_tick(struct supervisor *supervisor);

#endif
