/* When a child that died is started again, and what its death was. Pure: times are given.
 * The first death after a healthy spell costs no delay: deliveries wait for the replacement. */
#ifndef SUPERVISOR_RESTART_POLICY_H
#define SUPERVISOR_RESTART_POLICY_H

#include <stdint.h>

/* A process that served for so long makes earlier deaths forgotten. Nothing else does: the longest
 * delay is shorter than many a window, and a window would forget deaths while they go on. */
#define RESTART_HEALTHY_MS   10000
#define RESTART_DELAY_MIN_MS 100
#define RESTART_DELAY_MAX_MS 30000

/* Zeroed: it never died. */
struct restart_history {
    uint32_t deaths; /* in a row, no healthy spell between them */
};

/* A process died that had served for `served_ms` (0: it never said READY). */
void restart_note_death(struct restart_history *history, int64_t served_ms);
/* A process has served for `served_ms` and still does. Returns how many deaths that made forgotten.
 */
uint32_t restart_note_serving(struct restart_history *history, int64_t served_ms);
/* How long to wait, from the last death, until the next start: 0 after the first, then doubling. */
int64_t restart_delay_ms(const struct restart_history *history);

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
