/* A reader for the three forms of an HTTP date. Each form is a pattern, walked by one function;
 * letters of the pattern that are no field stand for themselves. */
#include "common/core/http_date.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MS_PER_DAY  INT64_C(86400000)
#define YEAR_WINDOW 50
#define LAST_MS     INT64_C(253402300799999) /* the end of 9999 */

/* `w` short and `W` long name of a day, `d` two digits or a space and one (asctime), `D` two
 * digits, `b` month, `y` two-digit and `Y` four-digit year, `T` time of day. A final "GMT" is text.
 */
static const char *const patterns[] = {
    "w, D b Y T GMT",
    "W, D-b-y T GMT",
    "w b d T Y",
};

struct date {
    int year, month, day, hour, minute, second;
    bool year_has_two_digits;
};

static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Days from 1970-01-01 to the first of January; years from 0 on. */
static int64_t days_before_year(int64_t year)
{
    int64_t y = year - 1; /* leap days up to the end of the year before */

    return 365 * (year - 1970) + (y / 4 - y / 100 + y / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static int64_t year_of(int64_t unix_ms)
{
    int64_t days = unix_ms / MS_PER_DAY;
    int64_t year = 1970 + days / 365; /* a little late for far years; corrected below */

    while (days_before_year(year) > days) {
        year--;
    }
    return year;
}

static int64_t to_unix_ms(const struct date *date)
{
    int64_t days = days_before_year(date->year) + date->day - 1;

    for (int month = 1; month < date->month; month++) {
        days += days_in_month(date->year, month);
    }
    return ((days * 24 + date->hour) * 60 + date->minute) * 60000 + (int64_t)date->second * 1000;
}

/* Two-digit years: the latest year with these digits whose date is at most 50 years ahead of now.
 */
static void place_in_century(struct date *date, int64_t now_ms)
{
    int64_t digits = date->year;
    if (now_ms < 0 || now_ms > LAST_MS) { /* a clock out of its mind must not overflow the years */
        now_ms = now_ms < 0 ? 0 : LAST_MS;
    }
    int64_t now_year = year_of(now_ms);
    int64_t year = now_year - now_year % 100 + 100 + digits;
    struct date shifted = *date;

    for (;; year -= 100) {
        shifted.year = (int)(year - YEAR_WINDOW);
        if (to_unix_ms(&shifted) <= now_ms || year < 200) {
            date->year = (int)year;
            return;
        }
    }
}

struct cursor {
    const char *p, *end;
};

static bool take_digits(struct cursor *c, size_t count, int *ret)
{
    int value = 0;

    if ((size_t)(c->end - c->p) < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (c->p[i] < '0' || c->p[i] > '9') {
            return false;
        }
        value = value * 10 + (c->p[i] - '0');
    }
    c->p += count;
    *ret = value;
    return true;
}

static bool take_text(struct cursor *c, const char *text, size_t len)
{
    if ((size_t)(c->end - c->p) < len || memcmp(c->p, text, len) != 0) {
        return false;
    }
    c->p += len;
    return true;
}

static bool take_day_name(struct cursor *c, bool is_short)
{
    for (size_t i = 0; i < 7; i++) {
        if (take_text(c, day_names[i], is_short ? 3 : strlen(day_names[i]))) {
            return true;
        }
    }
    return false;
}

static bool take_month(struct cursor *c, int *ret)
{
    for (int i = 0; i < 12; i++) {
        if (take_text(c, month_names[i], 3)) {
            *ret = i + 1;
            return true;
        }
    }
    return false;
}

static bool take_time(struct cursor *c, struct date *date)
{
    return take_digits(c, 2, &date->hour) && take_text(c, ":", 1) &&
           take_digits(c, 2, &date->minute) && take_text(c, ":", 1) &&
           take_digits(c, 2, &date->second);
}

static bool take_field(struct cursor *c, char field, struct date *date)
{
    switch (field) {
    case 'w':
    case 'W':
        return take_day_name(c, field == 'w');
    case 'd':
        return take_text(c, " ", 1) ? take_digits(c, 1, &date->day) : take_digits(c, 2, &date->day);
    case 'D':
        return take_digits(c, 2, &date->day);
    case 'b':
        return take_month(c, &date->month);
    case 'y':
        date->year_has_two_digits = true;
        return take_digits(c, 2, &date->year);
    case 'Y':
        return take_digits(c, 4, &date->year);
    case 'T':
        return take_time(c, date);
    default:
        return take_text(c, &field, 1);
    }
}

static bool matches(const char *text, size_t len, const char *pattern, struct date *ret)
{
    struct cursor c = {text, text + len};
    struct date date = {0};

    for (const char *p = pattern; *p; p++) {
        if (strcmp(p, "GMT") == 0) {
            if (!take_text(&c, p, 3)) {
                return false;
            }
            break;
        }
        if (!take_field(&c, *p, &date)) {
            return false;
        }
    }
    *ret = date;
    return c.p == c.end;
}

static bool is_possible(const struct date *date)
{
    return date->year >= 1 && date->month >= 1 && date->month <= 12 && date->day >= 1 &&
           date->day <= days_in_month(date->year, date->month) && date->hour <= 23 &&
           date->minute <= 59 && date->second <= 60; /* 60: a leap second */
}

int http_date_parse(const char *text, size_t len, int64_t now_ms, int64_t *ret_ms)
{
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct date date;

        if (!matches(text, len, patterns[i], &date)) {
            continue;
        }
        if (date.year_has_two_digits) {
            place_in_century(&date, now_ms);
        }
        if (!is_possible(&date)) {
            return -EINVAL;
        }
        *ret_ms = to_unix_ms(&date);
        return 0;
    }
    return -EINVAL;
}
