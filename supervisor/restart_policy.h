/* When a child that died is started again, and what its death was. Pure: the time is given.
 * The first death after a healthy spell costs no delay: deliveries wait for the replacement. */
#ifndef SUPERVISOR_RESTART_POLICY_H
#define SUPERVISOR_RESTART_POLICY_H

#include <stdint.h>

#define RESTART_DEATHS_KEPT 16
#define RESTART_HEALTHY_MS                                                                         \
    10000 /* a process that served for so long makes earlier deaths forgotten */
#define RESTART_WINDOW_MS    60000 /* and so does this time */
#define RESTART_DELAY_MIN_MS 100
#define RESTART_DELAY_MAX_MS 30000

/* A bounded record of deaths; zeroed: none. */
struct restart_history {
    int64_t deaths_ms[RESTART_DEATHS_KEPT]; /* CLOCK_MONOTONIC, a ring */
    uint32_t count;                         /* how many of them are in use */
    uint32_t next;
};

/* A process that was started at `started_ms` died at `now_ms`. */
void restart_note_death(struct restart_history *history, int64_t started_ms, int64_t now_ms);
/* How long to wait, from now, until the next start: 0, then growing with the deaths of the last
 * minute. */
int64_t restart_delay_ms(const struct restart_history *history, int64_t now_ms);

enum death {
    DEATH_CLEAN,      /* exit 0 */
    DEATH_FAILED,     /* any other exit status */
    DEATH_BAD_CONFIG, /* exit 2: starting it again changes nothing */
    DEATH_SIGNAL,
};
/* The status that waitpid() gave, classed once. */
enum death death_of(int wait_status);
const char *death_name(enum death death);

#endif
