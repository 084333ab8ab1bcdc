/* Compares a heartbeat with what was seen before. Pure. */
#include "supervisor/watchdog.h"

void watchdog_reset(struct watchdog *watchdog, int64_t now_ms)
{
    watchdog->changed_ms = now_ms;
}

bool watchdog_has_expired(struct watchdog *watchdog, int64_t beat, int64_t now_ms, int64_t limit_ms)
{
    if (beat != watchdog->last_beat) {
        watchdog->last_beat = beat;
        watchdog->changed_ms = now_ms;
    }
    return now_ms - watchdog->changed_ms >= limit_ms;
}
