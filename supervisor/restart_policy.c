/* Delay before the next start from the deaths so far; classes of exit status. Pure. */
#include "supervisor/restart_policy.h"

#include <sys/wait.h>

#define EXIT_BAD_CONFIG 2

void restart_note_death(struct restart_history *history, int64_t served_ms)
{
    (void)restart_note_serving(history, served_ms);
    if (history->deaths < UINT32_MAX) {
        history->deaths++;
    }
}

uint32_t restart_note_serving(struct restart_history *history, int64_t served_ms)
{
    const uint32_t forgotten = served_ms >= RESTART_HEALTHY_MS ? history->deaths : 0;

    history->deaths -= forgotten;
    return forgotten;
}

int64_t restart_delay_ms(const struct restart_history *history)
{
    int64_t delay_ms = RESTART_DELAY_MIN_MS;

    if (history->deaths <= 1) {
        return 0;
    }
    for (uint32_t i = 2; i < history->deaths && delay_ms < RESTART_DELAY_MAX_MS; i++) {
        delay_ms *= 2;
    }
    return delay_ms < RESTART_DELAY_MAX_MS ? delay_ms : RESTART_DELAY_MAX_MS;
}

enum death death_of(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return DEATH_SIGNAL;
    }
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        return DEATH_CLEAN;
    }
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_BAD_CONFIG) {
        return DEATH_BAD_CONFIG;
    }
    return DEATH_FAILED;
}

const char *death_name(enum death death)
{
    switch (death) {
    case DEATH_CLEAN:
        return "exit 0";
    case DEATH_FAILED:
        return "exit";
    case DEATH_BAD_CONFIG:
        return "bad configuration";
    case DEATH_SIGNAL:
        return "signal";
    }
    return "?";
}
