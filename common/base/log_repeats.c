/* See log_repeats.h. */
#include "common/base/log_repeats.h"

#include <stddef.h>
#include <stdio.h>

static bool is_over(const struct log_repeat *repeat, int64_t now_ms)
{
    return now_ms - repeat->began_ms >= LOG_REPEATS_WINDOW_MS || now_ms < repeat->began_ms;
}

static bool has_held_back(const struct log_repeat *repeat)
{
    return repeat->seen > LOG_REPEATS_WRITTEN;
}

/* Its own place, else one that nobody needs any more; NULL: all are in use. */
static struct log_repeat *place_of(struct log_repeats *repeats, uint64_t hash, int64_t now_ms)
{
    struct log_repeat *place = NULL;

    for (size_t i = 0; i < LOG_REPEATS_KEPT; i++) {
        struct log_repeat *repeat = &repeats->kept[i];

        if (repeat->hash == hash) {
            return repeat;
        }
        if (repeat->hash == 0 || (is_over(repeat, now_ms) && !has_held_back(repeat))) {
            place = repeat;
        }
    }
    return place;
}

bool log_repeats_see(struct log_repeats *repeats, uint64_t hash, int level, const char *text,
                     int64_t now_ms)
{
    hash = hash ? hash : 1;
    struct log_repeat *repeat = place_of(repeats, hash, now_ms);

    if (!repeat) {
        return true; /* more than can be watched: written */
    }
    if (repeat->hash != hash || is_over(repeat, now_ms)) {
        *repeat = (struct log_repeat){.hash = hash, .began_ms = now_ms, .level = level};
        (void)snprintf(repeat->text, sizeof(repeat->text), "%s", text); /* cut if it is long */
    }
    repeat->seen += repeat->seen < UINT32_MAX;
    return repeat->seen <= LOG_REPEATS_WRITTEN;
}

bool log_repeats_take(struct log_repeats *repeats, int64_t now_ms, bool all, struct log_repeat *ret)
{
    for (size_t i = 0; i < LOG_REPEATS_KEPT; i++) {
        struct log_repeat *repeat = &repeats->kept[i];

        if (repeat->hash != 0 && has_held_back(repeat) && (all || is_over(repeat, now_ms))) {
            *ret = *repeat;
            *repeat = (struct log_repeat){.hash = 0};
            return true;
        }
    }
    return false;
}
