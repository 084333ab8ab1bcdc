/* Mistakes and warnings as lines for people, bounded in number and length, and the guess at what
 * was meant. */
#include "common/base/settings_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/utf8.h"

#define REPORT_MAX (256u * 1024u)
#define LINE_BYTES 1024

void settings_report_init(struct settings_report *report)
{
    buf_init(&report->errors, REPORT_MAX);
    buf_init(&report->warnings, REPORT_MAX);
    report->error_count = 0;
    report->is_look_only = false;
}

void settings_report_done(struct settings_report *report)
{
    buf_done(&report->errors);
    buf_done(&report->warnings);
    report->error_count = 0;
}

__attribute__((format(printf, 5, 0))) static void add_line(struct settings_source *source,
                                                           struct buf *out, size_t line,
                                                           const char *path, const char *format,
                                                           va_list args)
{
    char reason[LINE_BYTES];
    int err = 0;

    if (out->len > REPORT_MAX / 2) { /* far from the maximum: a failed append would drop all */
        return;
    }
    (void)vsnprintf(reason, sizeof(reason), format, args); /* a very long reason is cut */
    if (line > 0) {
        err = buf_appendf(out, "%s:%zu: ", source->file, line);
    } else {
        err = buf_appendf(out, "%s: ", source->file);
    }
    if (err == 0 && path) {
        err = buf_appendf(out, "%s: ", path);
    }
    if (err == 0) {
        err = buf_appendf(out, "%s\n", reason);
    }
    if (err < 0) {
        source->err = err;
    }
}

void settings_complain(struct settings_source *source, size_t line, const char *path,
                       const char *format, ...)
{
    va_list args;

    if (source->report->error_count++ >= SETTINGS_ERROR_MAX) {
        return;
    }
    va_start(args, format);
    add_line(source, &source->report->errors, line, path, format, args);
    va_end(args);
}

void settings_warn(struct settings_source *source, size_t line, const char *path,
                   const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_line(source, &source->report->warnings, line, path, format, args);
    va_end(args);
}

struct settings_shown settings_show(const char *value, size_t len)
{
    struct settings_shown shown = {.text = "'"};
    size_t n = 1;

    while (len > 0) {
        uint32_t code;
        size_t step = utf8_next(value, len, &code);

        if (n + 4 > 62) {
            memcpy(shown.text + n, "\xe2\x80\xa6", 3); /* … */
            n += 3;
            break;
        }
        if (step == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0)) {
            shown.text[n++] = '?';
            step = step ? step : 1;
        } else {
            memcpy(shown.text + n, value, step);
            n += step;
        }
        value += step;
        len -= step;
    }
    shown.text[n++] = '\'';
    shown.text[n] = '\0';
    return shown;
}

/* Number of changed, added and dropped letters (Levenshtein), by one row of the usual matrix. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[96];

    for (size_t j = 0; j <= b_len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];
            size_t best = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);

            best = above + 1 < best ? above + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[b_len];
}

void settings_guess_try(struct settings_guess *guess, const char *word, const char *candidate,
                        size_t candidate_len)
{
    size_t word_len = strlen(word);

    if (word_len >= sizeof(guess->name) || candidate_len >= sizeof(guess->name) - 1) {
        return;
    }
    size_t distance = edit_distance(word, word_len, candidate, candidate_len);
    size_t allowed = 1 + word_len / 4; /* further away it is no slip of the finger */

    if (distance > allowed || (guess->name[0] && distance >= guess->distance)) {
        return;
    }
    memcpy(guess->name, candidate, candidate_len);
    guess->name[candidate_len] = '\0';
    guess->distance = distance;
}
