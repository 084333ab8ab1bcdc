/* JSON in, text out: the table of a session, an entry line by line, a problem as one sentence. */
#include "api/ctl/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/exit_code.h"
#include "api/ctl/http_client.h"
#include "api/ctl/print.h"
#include "api/ctl/table.h"
#include "common/base/err.h"
#include "common/core/buf.h"
#include "common/core/span.h"

#define TEXT_MAX   ((size_t)512 * 1024 * 1024)
#define NAME_WIDTH 17

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* How long ago the time in this member was; "-" without one. */
static void age_of(const json_t *object, const char *name, int64_t now_ms, char out[PRINT_MAX])
{
    int64_t ms;

    if (print_parse_time(text_of(object, name), &ms) < 0) {
        snprintf(out, PRINT_MAX, "-");
    } else {
        print_age(now_ms - ms, out);
    }
}

/* ---- list ---- */

/* Why an entry stands; NULL when out of memory. */
static char *reason_of(const json_t *entry)
{
    const json_t *error = json_object_get(entry, "lastError");
    const json_t *failed = json_object_get(entry, "waitsForFailed");
    const char *first = json_string_value(json_array_get(failed, 0));
    char *reason = NULL;

    if (first) {
        const size_t more = json_array_size(failed) - 1;

        const int len =
            more > 0 ? asprintf(&reason, "waits for %s and %zu more, failed or parked", first, more)
                     : asprintf(&reason, "waits for %s, failed or parked", first);

        return len < 0 ? NULL : reason;
    }
    return asprintf(&reason, "%s%s%s", text_of(error, "code"),
                    text_of(error, "message")[0] ? ": " : "", text_of(error, "message")) < 0
               ? NULL
               : reason;
}

static void add_row(struct table *table, const json_t *entry, int64_t now_ms)
{
    char attempts[PRINT_MAX], age[PRINT_MAX];
    AUTO_FREE char *reason = reason_of(entry);

    snprintf(attempts, sizeof(attempts), "%.0f",
             json_number_value(json_object_get(entry, "attempts")));
    age_of(entry, "acceptedAt", now_ms, age);
    table_add_str(table, text_of(entry, "id"));
    table_add_str(table, text_of(entry, "status"));
    table_add_str(table, text_of(entry, "kind"));
    table_add_str(table, attempts);
    table_add_str(table, age);
    table_add_str(table, reason ? reason : "");
}

int answer_print_list(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    static const struct table_column columns[] = {
        {"ID", 0}, {"STATUS", 0}, {"KIND", 0}, {"ATTEMPTS", 1}, {"AGE", 1}, {"ERROR", 0},
    };
    const json_t *entries = json_object_get(root, "entries");
    const json_t *entry;
    size_t i;

    (void)text;
    if (!json_is_array(entries)) {
        return -EINVAL;
    }
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));

    if (!table) {
        return -ENOMEM;
    }
    json_array_foreach(entries, i, entry)
    {
        add_row(table, entry, now_ms);
    }
    const int err = table_print(table, 0, SIZE_MAX, out);

    table_destroy(&table);
    return err;
}

/* ---- show ---- */

/* The next member of an object's text: `*at` stands behind '{' or behind the last value, and is
 * moved on. False at the end. The text is valid JSON: jansson has read it. */
static bool next_member(struct span text, size_t *at, struct span *ret_name, struct span *ret_value)
{
    size_t starts[2] = {0}, ends[2] = {0};
    size_t i = *at;

    for (size_t part = 0; part < 2; part++) {
        bool in_string = false;
        int depth = 0;

        i += strspn(text.ptr + i, " \t\r\n,:");
        starts[part] = i;
        for (; i < text.len; i++) {
            const char c = text.ptr[i];

            if (in_string) {
                i += c == '\\';
                in_string = c != '"';
                continue;
            }
            if (depth == 0 && strchr(",:} \t\r\n", c)) {
                break;
            }
            in_string = c == '"';
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        }
        ends[part] = i;
    }
    if (i >= text.len || ends[0] == starts[0]) {
        return false;
    }
    *at = i;
    *ret_name = (struct span){text.ptr + starts[0], ends[0] - starts[0]};
    *ret_value = (struct span){text.ptr + starts[1], ends[1] - starts[1]};
    return true;
}

/* A string decoded, anything else as it is spelt: no number loses a digit. */
static void print_value(struct span json, struct buf *out)
{
    json_t *value = json.ptr[0] == '"'
                        ? json_loadb(json.ptr, json.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                        : NULL;

    if (value) {
        print_safe_lines(out, (struct span){json_string_value(value), json_string_length(value)});
    } else {
        print_safe(out, json);
    }
    json_decref(value);
}

static void print_error(const json_t *error, struct buf *out)
{
    print_safe(out, span_of(text_of(error, "code")));
    if (text_of(error, "message")[0]) {
        buf_append_str(out, ": ");
        print_safe_lines(out, span_of(text_of(error, "message")));
    }
}

/* Behind a time: how far away it is. */
static void print_distance(const json_t *root, const char *name, int64_t now_ms, struct buf *out)
{
    const size_t len = strlen(name);
    char age[PRINT_MAX];
    int64_t ms;

    if (len > 2 && strcmp(name + len - 2, "At") == 0 &&
        print_parse_time(text_of(root, name), &ms) == 0) {
        print_age(ms <= now_ms ? now_ms - ms : ms - now_ms, age);
        buf_appendf(out, ms <= now_ms ? "  (%s ago)" : "  (in %s)", age);
    }
}

int answer_print_members(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    struct span name, value;
    size_t at = 1 + strcspn(text.ptr, "{");

    while (next_member(text, &at, &name, &value)) {
        char plain[64];
        const size_t len = name.len >= 2 ? name.len - 2 : 0;

        snprintf(plain, sizeof(plain), "%.*s", (int)(len < 63 ? len : 63), name.ptr + 1);
        print_safe(out, span_of(plain));
        buf_appendf(out, "%*s  ", len < NAME_WIDTH ? NAME_WIDTH - (int)len : 0, "");
        if (strcmp(plain, "lastError") == 0) {
            print_error(json_object_get(root, plain), out);
        } else {
            print_value(value, out);
        }
        print_distance(root, plain, now_ms, out);
        buf_append_str(out, "\n");
    }
    return 0;
}

int answer_print_entry(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    return text_of(root, "id")[0] ? answer_print_members(root, text, now_ms, out) : -EINVAL;
}

/* ---- what an operation did ---- */

/* "ID WHAT\n" */
static int print_done(const json_t *root, const char *what, struct buf *out)
{
    if (!text_of(root, "id")[0] || !what[0]) {
        return -EINVAL;
    }
    print_safe(out, span_of(text_of(root, "id")));
    buf_append_str(out, " ");
    print_safe(out, span_of(what));
    buf_append_str(out, "\n");
    return 0;
}

int answer_print_retried(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    const char *status = text_of(root, "status");

    (void)text, (void)now_ms;
    /* One that has been sent again and has left since has no status. */
    return print_done(root, status[0] ? status : text_of(root, "result"), out);
}

/* What a result means where the ID is not the one that was asked about. */
static const struct {
    const char *result, *meaning;
} meanings[] = {
    {"follow_up", "follow_up (a new entry, sent behind it)"},
    {"replaced", "replaced (a new entry takes its place)"},
};

int answer_print_changed(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    const char *result = text_of(root, "result");

    (void)text, (void)now_ms;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (strcmp(meanings[i].result, result) == 0) {
            return print_done(root, meanings[i].meaning, out);
        }
    }
    return print_done(root, result, out);
}

int answer_print_accepted(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    const char *status = text_of(root, "status");
    char what[128];

    (void)text, (void)now_ms;
    if (strcmp(status, "duplicate") != 0) {
        return print_done(root, status, out);
    }
    snprintf(what, sizeof(what), "duplicate (%s)", text_of(root, "entryStatus"));
    return print_done(root, what, out);
}

/* ---- the whole answer ---- */

static json_t *parse(const struct http_answer *answer)
{
    return json_loadb(answer->body.bytes ? answer->body.bytes : "", answer->body.len,
                      JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

int answer_print(const struct http_answer *answer, answer_print_fn *print, int64_t now_ms)
{
    json_t *root = parse(answer);
    struct buf out;

    buf_init(&out, TEXT_MAX);
    int err = json_is_object(root)
                  ? print(root, (struct span){answer->body.bytes, answer->body.len}, now_ms, &out)
                  : -EINVAL;

    if (err == 0 && out.failed) {
        err = -ENOMEM;
    }
    if (err == 0) {
        fwrite(out.bytes, 1, out.len, stdout);
    }
    buf_done(&out);
    json_decref(root);
    return err;
}

void answer_pass_through(const struct http_answer *answer)
{
    const char *bytes = answer->body.bytes;
    const size_t len = answer->body.len;

    if (len > 0) {
        fwrite(bytes, 1, len, stdout);
    }
    if (len == 0 || bytes[len - 1] != '\n') {
        putchar('\n');
    }
    fflush(stdout);
}

int answer_explain(const struct http_answer *answer, const char *server)
{
    json_t *root = parse(answer);
    const char *title = text_of(root, "title"), *detail = text_of(root, "detail");
    struct buf out;

    buf_init(&out, TEXT_MAX);
    if (title[0]) {
        print_safe(&out, span_of(title));
        buf_append_str(&out, detail[0] ? ": " : "");
        print_safe(&out, span_of(detail));
        if (text_of(root, "code")[0]) {
            buf_append_str(&out, " [");
            print_safe(&out, span_of(text_of(root, "code")));
            buf_append_str(&out, "]");
        }
    } else {
        buf_appendf(&out, "%s answered with HTTP status %ld", server, answer->status);
    }
    fprintf(stderr, "outboxctl: %s\n", out.bytes ? out.bytes : "out of memory");
    buf_done(&out);
    json_decref(root);
    return answer->status == 404   ? EXIT_CODE_NOT_FOUND
           : answer->status == 409 ? EXIT_CODE_CONFLICT
                                   : EXIT_CODE_FAILED;
}
