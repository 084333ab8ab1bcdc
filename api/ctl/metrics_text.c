/* Line by line: NAME{label="value",…} NUMBER. Made for outboxd's own text, which has neither
 * timestamps nor blanks within braces. */
#include "api/ctl/metrics_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64

/* From an opening quote to behind the closing one. */
static const char *behind_quotes(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\' && at + 1 < end;
    }
    return at < end ? at + 1 : end;
}

static bool read_number(const char *at, const char *end, double *ret)
{
    char text[NUMBER_MAX];
    char *stop = NULL;

    snprintf(text, sizeof(text), "%.*s", (int)(end - at < NUMBER_MAX ? end - at : 0), at);
    *ret = strtod(text, &stop);
    return stop != text && *stop == '\0';
}

static bool read_sample(struct span line, struct metrics_sample *ret)
{
    const char *at = line.ptr, *end = line.ptr + line.len;

    while (at < end && *at != '{' && *at != ' ' && *at != '#') {
        at++;
    }
    ret->name = (struct span){line.ptr, (size_t)(at - line.ptr)};
    ret->labels = (struct span){at, 0};
    if (at < end && *at == '{') {
        const char *first = ++at;

        while (at < end && *at != '}') {
            at = *at == '"' ? behind_quotes(at, end) : at + 1;
        }
        ret->labels = (struct span){first, (size_t)(at - first)};
        at += at < end;
    }
    return ret->name.len > 0 && at < end && *at == ' ' && read_number(at + 1, end, &ret->value);
}

bool metrics_text_next(struct span *text, struct metrics_sample *ret)
{
    while (text->len > 0) {
        const char *feed = memchr(text->ptr, '\n', text->len);
        const size_t len = feed ? (size_t)(feed - text->ptr) : text->len;
        const struct span line = {text->ptr, len};

        text->ptr += len + (feed != NULL);
        text->len -= len + (feed != NULL);
        if (read_sample(line, ret)) {
            return true;
        }
    }
    return false;
}

struct span metrics_label(const struct metrics_sample *sample, const char *label)
{
    const char *at = sample->labels.ptr, *end = at + sample->labels.len;
    const size_t len = strlen(label);

    while (at < end) {
        const char *equals = memchr(at, '=', (size_t)(end - at));

        if (!equals || equals + 1 >= end || equals[1] != '"') {
            break;
        }
        const char *behind = behind_quotes(equals + 1, end);

        if ((size_t)(equals - at) == len && memcmp(at, label, len) == 0 && behind - equals > 2) {
            return (struct span){equals + 2, (size_t)(behind - 1 - (equals + 2))};
        }
        at = behind + (behind < end && *behind == ',');
    }
    return (struct span){"", 0};
}
