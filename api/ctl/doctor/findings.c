/* A list of findings, as lines with what to do below them, or as JSON. */
#include "api/ctl/doctor/findings.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "common/base/err.h"
#include "common/core/buf.h"

#define NAME_WIDTH  17
#define LEVEL_WIDTH 7
#define TEXT_ROOM   ((size_t)1 << 20)

const char *check_name(enum check_id id)
{
    static const char *const names[CHECK_COUNT] = {
#define CHECK(id, rule, name) [CHECK_##id] = (name),
#include "api/ctl/doctor/checks.def"
    };

    return names[id];
}

const char *finding_level_name(enum finding_level level)
{
    static const char *const names[FINDING_LEVEL_COUNT] = {
        [FINDING_OK] = "ok",
        [FINDING_NOTE] = "note",
        [FINDING_WARNING] = "warning",
        [FINDING_FAILURE] = "failure",
    };

    return names[level];
}

void findings_init(struct findings *findings)
{
    *findings = (struct findings){0};
}

void findings_done(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->all[i].found);
    }
    free(findings->all);
    findings_init(findings);
}

static bool grow(struct findings *findings)
{
    const size_t capacity = findings->capacity > 0 ? 2 * findings->capacity : 32;
    struct finding *longer = realloc(findings->all, capacity * sizeof(*longer));

    if (!longer) {
        return false;
    }
    findings->all = longer;
    findings->capacity = capacity;
    return true;
}

void findings_add(struct findings *findings, enum finding_level level, const char *todo,
                  const char *format, ...)
{
    char *found = NULL;
    va_list args;

    va_start(args, format);
    const int len = vasprintf(&found, format, args);

    va_end(args);
    if (len < 0 || (findings->count == findings->capacity && !grow(findings))) {
        abort(); /* small fixed objects */
    }
    findings->all[findings->count++] =
        (struct finding){.check = findings->check, .level = level, .found = found, .todo = todo};
}

size_t findings_count(const struct findings *findings, enum finding_level level)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->count; i++) {
        count += findings->all[i].level == level;
    }
    return count;
}

/* ---- for people ---- */

static enum style style_of(enum finding_level level)
{
    switch (level) {
    case FINDING_OK:
        return STYLE_GOOD;
    case FINDING_NOTE:
        return STYLE_FAINT;
    case FINDING_WARNING:
        return STYLE_CAREFUL;
    case FINDING_FAILURE:
    case FINDING_LEVEL_COUNT:
        break;
    }
    return STYLE_BAD;
}

/* A text of others, safe for a terminal, wrapped at `column`. */
static void add_text(const char *text, size_t column, size_t columns, struct buf *out)
{
    struct buf safe;

    buf_init(&safe, TEXT_ROOM);
    print_safe(&safe, span_of(text));
    print_wrapped(out, safe.bytes ? safe.bytes : "", column, column, columns);
    buf_done(&safe);
}

static void add_finding(const struct finding *finding, size_t columns, bool is_coloured,
                        struct buf *out)
{
    const size_t column = LEVEL_WIDTH + NAME_WIDTH + 4;
    const char *level = finding_level_name(finding->level);

    style_add(out, style_of(finding->level), is_coloured, span_of(level));
    (void)buf_appendf(out, "%*s  %-*s  ", (int)(LEVEL_WIDTH - strlen(level)), "", NAME_WIDTH,
                      check_name(finding->check));
    add_text(finding->found, column, columns, out);
    if (finding->todo) {
        (void)buf_appendf(out, "%*s-> ", (int)column, "");
        add_text(finding->todo, column + 3, columns, out);
    }
}

static void add_count(struct buf *out, size_t count, const char *one, const char *many)
{
    (void)buf_appendf(out, "%zu %s", count, count == 1 ? one : many);
}

void findings_print(const struct findings *findings, size_t columns, bool is_coloured,
                    struct buf *out)
{
    for (size_t i = 0; i < findings->count; i++) {
        add_finding(&findings->all[i], columns, is_coloured, out);
    }
    (void)buf_append_str(out, "\n");
    add_count(out, findings_count(findings, FINDING_FAILURE), "failure", "failures");
    (void)buf_append_str(out, ", ");
    add_count(out, findings_count(findings, FINDING_WARNING), "warning", "warnings");
    (void)buf_append_str(out, "\n");
}

/* ---- for scripts ---- */

void findings_print_json(const struct findings *findings, struct buf *out)
{
    json_t *checks = json_array();

    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->all[i];
        struct buf found;

        /* File names need not be UTF-8; JSON must be. */
        buf_init(&found, TEXT_ROOM);
        print_safe(&found, span_of(finding->found));
        json_array_append_new(
            checks, json_pack("{s:s, s:s, s:s, s:s*}", "check", check_name(finding->check), "level",
                              finding_level_name(finding->level), "found",
                              found.bytes ? found.bytes : "", "do", finding->todo));
        buf_done(&found);
    }
    json_t *root = json_pack("{s:s, s:o}", "result",
                             findings_count(findings, FINDING_FAILURE) > 0   ? "failures"
                             : findings_count(findings, FINDING_WARNING) > 0 ? "warnings"
                                                                             : "ok",
                             "checks", checks);
    AUTO_FREE char *text = json_dumps(root, JSON_COMPACT);

    json_decref(root);
    (void)buf_append_str(out, text ? text : "{}");
    (void)buf_append_str(out, "\n");
}
