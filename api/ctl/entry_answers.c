/* Entries for people: rows of a list, and one entry with all that is known of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/answers.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "api/ctl/table.h"
#include "api/json_tokens.h"
#include "common/base/err.h"
#include "common/core/buf.h"

#define LABEL_WIDTH 16

/* ---- a row ---- */

/* Why an entry stands; NULL when out of memory. */
static char *reason_of(const json_t *entry)
{
    const json_t *error = json_object_get(entry, "lastError");
    const json_t *failed = json_object_get(entry, "waitsForFailed");
    const char *first = json_string_value(json_array_get(failed, 0));
    const char *parked = answer_text(entry, "parkedReason");
    char *reason = NULL;
    int len;

    if (first && json_array_size(failed) > 1) {
        len = asprintf(&reason, "waits for %s and %zu more, failed or parked", first,
                       json_array_size(failed) - 1);
    } else if (first) {
        len = asprintf(&reason, "waits for %s, failed or parked", first);
    } else if (parked[0]) {
        len = asprintf(&reason, "%s", parked);
    } else {
        const char *message = answer_text(error, "message");

        len = asprintf(&reason, "%s%s%s", answer_text(error, "code"), message[0] ? ": " : "",
                       message);
    }
    return len < 0 ? NULL : reason;
}

static void age_of(const json_t *object, const char *name, int64_t now_ms, char out[PRINT_MAX])
{
    int64_t ms;

    if (print_parse_time(answer_text(object, name), &ms) < 0) {
        snprintf(out, PRINT_MAX, "-");
    } else {
        print_age(now_ms - ms, out);
    }
}

struct table *answer_entries_table(bool has_sessions)
{
    static const struct table_column with[] = {
        {"ID", 0},       {"SESSION", 0}, {"STATUS", 0}, {"KIND", 0},
        {"ATTEMPTS", 1}, {"AGE", 1},     {"WHY", 0},
    };
    static const struct table_column without[] = {
        {"ID", 0}, {"STATUS", 0}, {"KIND", 0}, {"ATTEMPTS", 1}, {"AGE", 1}, {"WHY", 0},
    };

    return has_sessions ? table_create(with, sizeof(with) / sizeof(with[0]))
                        : table_create(without, sizeof(without) / sizeof(without[0]));
}

void answer_entries_add(struct table *table, const json_t *entry, bool has_sessions,
                        const struct answer_view *view)
{
    const struct span status = span_of(answer_text(entry, "status"));
    char attempts[PRINT_MAX], age[PRINT_MAX];
    AUTO_FREE char *reason = reason_of(entry);

    snprintf(attempts, sizeof(attempts), "%.0f",
             json_number_value(json_object_get(entry, "attempts")));
    age_of(entry, "acceptedAt", view->now_ms, age);
    table_add_str(table, answer_text(entry, "id"));
    if (has_sessions) {
        table_add_str(table, answer_text(entry, "sessionID"));
    }
    table_add_styled(table, style_of_status(status), status);
    table_add_str(table, answer_text(entry, "kind"));
    table_add_str(table, attempts);
    table_add_str(table, age);
    table_add_str(table, reason ? reason : "");
}

/* ---- one entry ---- */

enum how {
    HOW_TEXT,
    HOW_LINES, /* a text that may have several */
    HOW_TIME,
    HOW_COUNT, /* nothing where it is 0 */
    HOW_SECONDS,
    HOW_FLAG, /* `label` is all there is to say */
    HOW_IDS,
    HOW_ERROR,
    HOW_JSON,   /* as it is spelt: no number loses a digit */
    HOW_HIDDEN, /* stands in the title */
};

/* What an entry or its tombstone may have, in the order in which it is shown; whatever else an
 * answer has is shown behind it. */
static const struct {
    const char *member, *label;
    enum how how;
} rows[] = {
    {"id", "", HOW_HIDDEN},
    {"status", "", HOW_HIDDEN},
    {"sessionID", "session", HOW_TEXT},
    {"kind", "kind", HOW_TEXT},
    {"clientMessageID", "clientMessageID", HOW_TEXT},
    {"userID", "userID", HOW_TEXT},
    {"acceptedAt", "accepted", HOW_TIME},
    {"sends", "requests", HOW_COUNT},
    {"lastAttemptAt", "last request", HOW_TIME},
    {"attempts", "failed attempts", HOW_COUNT},
    {"verifyAttempts", "vain look-ups", HOW_COUNT},
    {"transientFails", "not reached", HOW_COUNT},
    {"inFlightFor", "in flight for", HOW_SECONDS},
    {"nextAttemptAt", "next attempt", HOW_TIME},
    {"endedAt", "ended", HOW_TIME},
    {"replacedBy", "replaced by", HOW_TEXT},
    {"lastError", "last error", HOW_ERROR},
    {"conflictCurrent", "target has", HOW_JSON},
    {"parkedReason", "parked because", HOW_TEXT},
    {"dependsOn", "waits for", HOW_IDS},
    {"waitsForFailed", "failed or parked", HOW_IDS},
    {"blockedByInFlight", "waits while another entry of its session is being sent", HOW_FLAG},
    {"delayed", "has been waiting for long (stuck_after)", HOW_FLAG},
    {"unreadable", "what the store holds of it cannot be read", HOW_FLAG},
    {"text", "text", HOW_LINES},
    {"payload", "payload", HOW_JSON},
    {"model", "model", HOW_JSON},
    {"result", "result", HOW_JSON},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static void add_label(struct buf *out, const char *label)
{
    (void)buf_appendf(out, "%-*s  ", LABEL_WIDTH, label);
}

static void add_time(const char *time, const struct answer_view *view, struct buf *out)
{
    char age[PRINT_MAX];
    int64_t ms;

    print_safe(out, span_of(time));
    if (print_parse_time(time, &ms) == 0) {
        const bool is_past = ms <= view->now_ms;

        print_age(is_past ? view->now_ms - ms : ms - view->now_ms, age);
        (void)buf_appendf(out, is_past ? "  %s ago" : "  in %s", age);
    }
}

static void add_ids(const json_t *ids, const struct answer_view *view, struct buf *out)
{
    const json_t *id;
    size_t i;

    json_array_foreach(ids, i, id)
    {
        const char *text = json_string_value(id);
        const char *status = text ? json_string_value(json_object_get(view->others, text)) : NULL;

        if (i > 0) {
            (void)buf_append_str(out, "\n");
            add_label(out, "");
        }
        print_safe(out, span_of(text ? text : "?"));
        if (status) {
            (void)buf_append_str(out, "  ");
            style_add(out, style_of_status(span_of(status)), view->is_coloured, span_of(status));
        }
    }
}

/* Further lines of a text stand below its first. */
static void add_lines(struct span text, struct buf *out)
{
    for (bool is_first = true; text.len > 0 || is_first; is_first = false) {
        const char *end = text.len > 0 ? memchr(text.ptr, '\n', text.len) : NULL;
        const size_t len = end ? (size_t)(end - text.ptr) : text.len;

        if (!is_first) {
            (void)buf_append_str(out, "\n");
            add_label(out, "");
        }
        print_safe(out, (struct span){text.ptr, len});
        text.ptr += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
}

static void add_error(const json_t *error, const struct answer_view *view, struct buf *out)
{
    style_add(out, STYLE_BAD, view->is_coloured, span_of(answer_text(error, "code")));
    if (answer_text(error, "message")[0]) {
        (void)buf_append_str(out, ": ");
        add_lines(span_of(answer_text(error, "message")), out);
    }
}

static void add_value(enum how how, const json_t *value, struct span raw,
                      const struct answer_view *view, struct buf *out)
{
    char text[PRINT_MAX];

    switch (how) {
    case HOW_TIME:
        add_time(json_string_value(value) ? json_string_value(value) : "", view, out);
        return;
    case HOW_SECONDS:
        print_age((int64_t)(json_number_value(value) * 1000), text);
        (void)buf_append_str(out, text);
        return;
    case HOW_IDS:
        add_ids(value, view, out);
        return;
    case HOW_ERROR:
        add_error(value, view, out);
        return;
    case HOW_TEXT:
    case HOW_LINES:
        if (json_is_string(value)) {
            add_lines((struct span){json_string_value(value), json_string_length(value)}, out);
            return;
        }
        print_safe(out, raw);
        return;
    case HOW_COUNT:
    case HOW_JSON:
    case HOW_FLAG:
    case HOW_HIDDEN:
        print_safe(out, raw);
        return;
    }
}

static bool is_worth_a_line(enum how how, const json_t *value)
{
    switch (how) {
    case HOW_COUNT:
        return json_number_value(value) > 0;
    case HOW_FLAG:
        return json_is_true(value);
    case HOW_IDS:
        return json_array_size(value) > 0;
    case HOW_HIDDEN:
        return false;
    case HOW_TEXT:
    case HOW_LINES:
    case HOW_TIME:
    case HOW_SECONDS:
    case HOW_ERROR:
    case HOW_JSON:
        return value != NULL;
    }
    return false;
}

/* The index of a member's value in the tokens of `text`; 0: it has none. */
static int find_member(const struct json_tokens *tokens, struct span text, const char *name)
{
    for (int at = 1; at + 1 < tokens->count; at = json_tokens_behind(tokens, at + 1)) {
        const jsmntok_t *token = &tokens->all[at];

        if (span_equal((struct span){text.ptr + token->start, (size_t)(token->end - token->start)},
                       span_of(name))) {
            return at + 1;
        }
    }
    return 0;
}

static void add_row(const json_t *root, const struct json_tokens *tokens, struct span text,
                    size_t row, const struct answer_view *view, struct buf *out)
{
    const json_t *value = json_object_get(root, rows[row].member);
    const int at = find_member(tokens, text, rows[row].member);

    if (at == 0 || !is_worth_a_line(rows[row].how, value)) {
        return;
    }
    if (rows[row].how == HOW_FLAG) {
        style_add(out, STYLE_CAREFUL, view->is_coloured, span_of(rows[row].label));
    } else {
        add_label(out, rows[row].label);
        add_value(rows[row].how, value, json_tokens_raw(text, &tokens->all[at]), view, out);
    }
    (void)buf_append_str(out, "\n");
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strcmp(rows[i].member, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Members of a newer server. */
static void add_unknown(const json_t *root, const struct json_tokens *tokens, struct span text,
                        struct buf *out)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        const int at = is_known(name) ? 0 : find_member(tokens, text, name);

        if (at > 0) {
            struct buf label;

            buf_init(&label, 1024);
            print_safe(&label, span_of(name));
            add_label(out, label.bytes ? label.bytes : "");
            print_safe(out, json_tokens_raw(text, &tokens->all[at]));
            (void)buf_append_str(out, "\n");
            buf_done(&label);
        }
    }
}

int answer_print_entry(const json_t *root, struct span text, const struct answer_view *view,
                       struct buf *out)
{
    const char *id = answer_text(root, "id"), *status = answer_text(root, "status");
    struct json_tokens tokens;

    if (!id[0]) {
        return -EINVAL;
    }
    json_tokens_init(&tokens);
    if (json_tokens_read(&tokens, text) < 0) {
        return -ENOMEM;
    }
    style_add(out, STYLE_TITLE, view->is_coloured, span_of(id));
    (void)buf_append_str(out, "  ");
    style_add(out, style_of_status(span_of(status)), view->is_coloured, span_of(status));
    (void)buf_append_str(out, "\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        add_row(root, &tokens, text, i, view, out);
    }
    add_unknown(root, &tokens, text, out);
    json_tokens_done(&tokens);
    return 0;
}
