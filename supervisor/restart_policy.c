/* Delay before the next start from the deaths so far; classes of exit status. Pure. */
#include "supervisor/restart_policy.h"

#include <sys/wait.h>

#define EXIT_BAD_CONFIG 2

void restart_note_death(struct restart_history *history, int64_t started_ms, int64_t now_ms)
{
    if (now_ms - started_ms >= RESTART_HEALTHY_MS) {
        history->count = 0;
    }
    history->deaths_ms[history->next] = now_ms;
    history->next = (history->next + 1) % RESTART_DEATHS_KEPT;
    if (history->count < RESTART_DEATHS_KEPT) {
        history->count++;
    }
}

/* Deaths of the last minute. */
static uint32_t recent_deaths(const struct restart_history *history, int64_t now_ms)
{
    uint32_t recent = 0;

    for (uint32_t i = 0; i < history->count; i++) {
        const uint32_t place = (history->next + RESTART_DEATHS_KEPT - 1 - i) % RESTART_DEATHS_KEPT;

        if (now_ms - history->deaths_ms[place] >= RESTART_WINDOW_MS) {
            break; /* those before it are older still */
        }
        recent++;
    }
    return recent;
}

int64_t restart_delay_ms(const struct restart_history *history, int64_t now_ms)
{
    const uint32_t recent = recent_deaths(history, now_ms);
    int64_t delay_ms = RESTART_DELAY_MIN_MS;

    if (recent <= 1) {
        return 0;
    }
    for (uint32_t i = 2; i < recent && delay_ms < RESTART_DELAY_MAX_MS; i++) {
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
