/* JSON in, text out: the table of a session, an entry line by line, a problem as one sentence. */
#include "api/ctl/answers.h"

#include <errno.h>
#include <inttypes.h>
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

static void add_row(struct table *table, const json_t *entry, int64_t now_ms)
{
    const json_t *error = json_object_get(entry, "lastError");
    char attempts[PRINT_MAX], age[PRINT_MAX];
    AUTO_FREE char *reason = NULL;

    snprintf(attempts, sizeof(attempts), "%" JSON_INTEGER_FORMAT,
             json_integer_value(json_object_get(entry, "attempts")));
    age_of(entry, "acceptedAt", now_ms, age);
    if (asprintf(&reason, "%s%s%s", text_of(error, "code"),
                 text_of(error, "message")[0] ? ": " : "", text_of(error, "message")) < 0) {
        reason = NULL;
    }
    table_add_str(table, text_of(entry, "id"));
    table_add_str(table, text_of(entry, "status"));
    table_add_str(table, text_of(entry, "kind"));
    table_add_str(table, attempts);
    table_add_str(table, age);
    table_add_str(table, reason ? reason : text_of(error, "code"));
}

int answer_print_list(const json_t *root, int64_t now_ms, struct buf *out)
{
    static const struct table_column columns[] = {
        {"ID", 0}, {"STATUS", 0}, {"KIND", 0}, {"ATTEMPTS", 1}, {"AGE", 1}, {"ERROR", 0},
    };
    const json_t *entries = json_object_get(root, "entries");
    const json_t *entry;
    size_t i;

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

static void print_value(const json_t *value, struct buf *out)
{
    if (json_is_string(value)) {
        print_safe_lines(out, (struct span){json_string_value(value), json_string_length(value)});
        return;
    }
    AUTO_FREE char *json = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    print_safe(out, span_of(json ? json : "?"));
}

static void print_error(const json_t *error, struct buf *out)
{
    print_safe(out, span_of(text_of(error, "code")));
    if (text_of(error, "message")[0]) {
        buf_append_str(out, ": ");
        print_safe_lines(out, span_of(text_of(error, "message")));
    }
}

int answer_print_entry(const json_t *root, int64_t now_ms, struct buf *out)
{
    const char *name;
    json_t *value;

    if (!text_of(root, "id")[0]) {
        return -EINVAL;
    }
    /* jansson keeps the order of the members. */
    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        int64_t ms;

        print_safe(out, span_of(name));
        buf_appendf(out, "%*s  ", strlen(name) < NAME_WIDTH ? NAME_WIDTH - (int)strlen(name) : 0,
                    "");
        if (strcmp(name, "lastError") == 0) {
            print_error(value, out);
        } else {
            print_value(value, out);
        }
        if (json_is_string(value) && strlen(name) > 2 &&
            strcmp(name + strlen(name) - 2, "At") == 0 &&
            print_parse_time(json_string_value(value), &ms) == 0) {
            char age[PRINT_MAX];

            print_age(ms <= now_ms ? now_ms - ms : ms - now_ms, age);
            buf_appendf(out, ms <= now_ms ? "  (%s ago)" : "  (in %s)", age);
        }
        buf_append_str(out, "\n");
    }
    return 0;
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

int answer_print_retried(const json_t *root, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    return print_done(root, text_of(root, "status"), out);
}

int answer_print_removed(const json_t *root, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    return print_done(root, text_of(root, "result"), out);
}

int answer_print_accepted(const json_t *root, int64_t now_ms, struct buf *out)
{
    const char *status = text_of(root, "status");
    char what[128];

    (void)now_ms;
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
                      JSON_ALLOW_NUL, NULL);
}

int answer_print(const struct http_answer *answer, answer_print_fn *print, int64_t now_ms)
{
    json_t *root = parse(answer);
    struct buf out;

    buf_init(&out, TEXT_MAX);
    int err = json_is_object(root) ? print(root, now_ms, &out) : -EINVAL;

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
