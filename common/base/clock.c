/* Wall time as text for people. No time zones: always UTC. */
#include "common/base/clock.h"

#include <stdio.h>
#include <string.h>

#define OUT_MAX 32

void clock_format_rfc3339(int64_t wall_ms, char *out)
{
    /* Rounded down, so that times before 1970 keep their milliseconds positive. */
    int64_t ms = ((wall_ms % 1000) + 1000) % 1000;
    time_t seconds = (time_t)((wall_ms - ms) / 1000);
    struct tm tm;
    char text[80]; /* so much if every field were as long as its type allows */

    /* A year that RFC 3339 can't write (four digits) is a corrupt time: say something that sorts
     * last. */
    if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
        memcpy(out, "9999-12-31T23:59:59.999Z", sizeof("9999-12-31T23:59:59.999Z"));
        return;
    }
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)ms);
    text[OUT_MAX - 1] = '\0';
    memcpy(out, text, strlen(text) + 1);
}
