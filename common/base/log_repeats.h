/* Which lines of a log are repeats: equal ones beyond the first few of a window are held back and
 * told in one line when the window is over. A line that differs in anything is never held back.
 * Pure: the time is given. */
#ifndef COMMON_BASE_LOG_REPEATS_H
#define COMMON_BASE_LOG_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_REPEATS_WINDOW_MS 10000
#define LOG_REPEATS_WRITTEN   5  /* of equal lines in a window */
#define LOG_REPEATS_KEPT      32 /* different lines that are watched at once */
#define LOG_REPEATS_TEXT_MAX  96

struct log_repeat {
    uint64_t hash; /* of all that stands in the line but its time; 0: free */
    int64_t began_ms;
    uint32_t seen;
    int level;                       /* the line's own */
    char text[LOG_REPEATS_TEXT_MAX]; /* its message, cut; a string */
};

struct log_repeats { /* zeroed: nothing seen */
    struct log_repeat kept[LOG_REPEATS_KEPT];
};

/* Whether this line is written. */
bool log_repeats_see(struct log_repeats *repeats, uint64_t hash, int level, const char *text,
                     int64_t now_ms);
/* One line that was held back, and whose window is over (`all`: whatever the time): copied and
 * forgotten. False: there is none. How many were held back: ret->seen - LOG_REPEATS_WRITTEN. */
bool log_repeats_take(struct log_repeats *repeats, int64_t now_ms, bool all,
                      struct log_repeat *ret);

#endif
