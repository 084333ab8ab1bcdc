/* What all events have stands in columns, whatever else they have behind it as name=value. */
#include "api/ctl/event_line.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/answers.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "common/core/buf.h"

#define TYPE_WIDTH 10

static struct span text_of(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);

    return json_is_string(value)
               ? (struct span){json_string_value(value), json_string_length(value)}
               : (struct span){"", 0};
}

/* ---- columns ---- */

static void add_type(const json_t *root, const struct answer_view *view, struct buf *out)
{
    const struct span type = text_of(root, "type");
    const size_t width = print_width(type);

    style_add(out, style_of_status(type), view->is_coloured, type);
    (void)buf_appendf(out, "%*s", width < TYPE_WIDTH ? (int)(TYPE_WIDTH - width) : 0, "");
}

static void add_value(const json_t *value, struct buf *out)
{
    if (json_is_string(value)) {
        print_safe(out, (struct span){json_string_value(value), json_string_length(value)});
    } else if (json_is_integer(value)) {
        (void)buf_appendf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        (void)buf_appendf(out, "%.0f", json_real_value(value));
    }
}

static bool is_among(const char *const names[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* All members but those `shown` already. */
static void add_rest(const json_t *root, const char *const shown[], size_t count, struct buf *out)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        if (!is_among(shown, count, name)) {
            (void)buf_append_str(out, " ");
            print_safe(out, span_of(name));
            (void)buf_append_str(out, "=");
            add_value(value, out);
        }
    }
}

/* ---- tail ---- */

static void add_update(const json_t *root, const struct answer_view *view, struct buf *out)
{
    static const char *const shown[] = {"type",    "workspaceID", "sessionID",
                                        "entryID", "kind",        "at"};

    print_safe(out, text_of(root, "at"));
    (void)buf_append_str(out, "  ");
    add_type(root, view, out);
    (void)buf_append_str(out, "  ");
    print_safe(out, text_of(root, "workspaceID"));
    (void)buf_append_str(out, "/");
    print_safe(out, text_of(root, "sessionID"));
    (void)buf_append_str(out, "  ");
    print_safe(out, text_of(root, "entryID"));
    (void)buf_append_str(out, "  ");
    print_safe(out, text_of(root, "kind"));
    add_rest(root, shown, sizeof(shown) / sizeof(shown[0]), out);
    (void)buf_append_str(out, "\n");
}

int event_line_write(struct span name, struct span json, const struct answer_view *view,
                     struct buf *out)
{
    json_t *root = json_loadb(json.ptr, json.len, JSON_ALLOW_NUL, NULL);

    if (!json_is_object(root)) {
        json_decref(root);
        return -EINVAL;
    }
    if (span_equal(name, span_of("reset"))) {
        (void)buf_append_str(out, style_begin(STYLE_CAREFUL, view->is_coloured));
        (void)buf_append_str(out, "-- events are missing here (");
        print_safe(out, text_of(root, "reason"));
        (void)buf_append_str(out, ") --");
        (void)buf_append_str(out, style_end(STYLE_CAREFUL, view->is_coloured));
        (void)buf_append_str(out, "\n");
    } else {
        add_update(root, view, out);
    }
    json_decref(root);
    return out->failed ? -EINVAL : 0;
}

/* ---- a journey ---- */

void event_line_journey(const json_t *data, int64_t previous_ms, const struct answer_view *view,
                        struct buf *out)
{
    static const char *const shown[] = {"type",         "workspaceID", "sessionID",       "entryID",
                                        "kind",         "at",          "clientMessageID", "userID",
                                        "nextAttemptAt"};
    const char *at = answer_text(data, "at");
    char ago[PRINT_MAX] = "-", after[PRINT_MAX] = "", text[PRINT_MAX];
    int64_t at_ms = 0, next_ms = 0;

    if (print_parse_time(at, &at_ms) == 0) {
        print_age(view->now_ms - at_ms, text);
        snprintf(ago, sizeof(ago), "%.20s ago", text);
        if (previous_ms > 0) {
            print_age(at_ms - previous_ms, text);
            snprintf(after, sizeof(after), "+%.20s", text);
        }
    }
    (void)buf_append_str(out, "  ");
    print_safe(out, span_of(at));
    (void)buf_appendf(out, "  %12s  %7s  ", ago, after);
    add_type(data, view, out);
    add_rest(data, shown, sizeof(shown) / sizeof(shown[0]), out);
    if (print_parse_time(answer_text(data, "nextAttemptAt"), &next_ms) == 0) {
        print_age(next_ms - at_ms, text);
        (void)buf_appendf(out, " next in %s", text);
    }
    (void)buf_append_str(out, "\n");
}
