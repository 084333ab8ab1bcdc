/* Delays: doubling with a ceiling, full jitter, and Retry-After as a floor. All sums saturate: a
 * far delay stays far. */
#include "common/core/backoff.h"

#include "common/core/http_date.h"

/* Uniformly in [0, max]: `random` is scaled up rather than reduced modulo, so that no value is more
 * likely. */
static int64_t uniform_up_to(int64_t max, uint32_t random)
{
    uint64_t n = (uint64_t)max + 1;

    /* n * random / 2^32 in two halves, so that the product can't overflow. */
    return (int64_t)((n >> 32) * random + (((n & UINT32_MAX) * random) >> 32));
}

static int64_t backoff_step_ms(uint32_t tries_made, int64_t base_ms, int64_t max_ms)
{
    int64_t step = base_ms < max_ms ? base_ms : max_ms;

    if (step <= 0) {
        return 0;
    }
    for (uint32_t i = 1; i < tries_made && step < max_ms; i++) {
        step = step > max_ms / 2 ? max_ms : step * 2;
    }
    return step;
}

int64_t backoff_delay_ms(uint32_t tries_made, int64_t base_ms, int64_t max_ms, bool full_jitter,
                         uint32_t random)
{
    int64_t step = backoff_step_ms(tries_made, base_ms, max_ms);

    return full_jitter ? uniform_up_to(step, random) : step;
}

int64_t backoff_after_floor_ms(int64_t floor_ms, uint32_t tries_made, int64_t base_ms,
                               int64_t max_ms, bool full_jitter, uint32_t random)
{
    int64_t step = backoff_step_ms(tries_made, base_ms, max_ms);
    int64_t extra = full_jitter ? uniform_up_to(step, random) : 0;

    if (floor_ms < 0) {
        floor_ms = 0;
    }
    return extra > INT64_MAX - floor_ms ? INT64_MAX : floor_ms + extra;
}

/* 1*DIGIT; -1 for anything else and for what no clock can express. */
static int64_t delta_seconds_ms(const char *value, size_t len)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return -1;
        }
        if (seconds > INT64_MAX / 1000 / 10 - 1) {
            return -1;
        }
        seconds = seconds * 10 + (value[i] - '0');
    }
    return seconds * 1000;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

int64_t backoff_retry_after(const char *value, size_t len, int64_t wall_now_ms, int64_t max_ms)
{
    int64_t ms;

    if (wall_now_ms < 0) { /* a clock that was never set: the difference must not overflow */
        wall_now_ms = 0;
    }
    while (len > 0 && is_blank(value[0])) {
        value++;
        len--;
    }
    while (len > 0 && is_blank(value[len - 1])) {
        len--;
    }
    if (len == 0) {
        return -1;
    }
    if (http_date_parse(value, len, wall_now_ms, &ms) == 0) {
        ms = ms > wall_now_ms ? ms - wall_now_ms : -1;
    } else {
        ms = delta_seconds_ms(value, len);
    }
    if (ms <= 0 || max_ms <= 0) {
        return -1;
    }
    return ms < max_ms ? ms : max_ms;
}
