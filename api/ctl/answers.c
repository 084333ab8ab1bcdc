/* JSON in, text out: what an operation did, and whatever else an answer holds, line by line. */
#include "api/ctl/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/explain.h"
#include "api/ctl/http_client.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "api/json_tokens.h"
#include "common/core/buf.h"

#define TEXT_MAX   ((size_t)512 * 1024 * 1024)
#define NAME_WIDTH 17

const char *answer_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* ---- members, a line each ---- */

/* A string decoded, anything else as it is spelt: no number loses a digit. */
static void print_value(struct span json, struct buf *out)
{
    json_t *value = json.len > 0 && json.ptr[0] == '"'
                        ? json_loadb(json.ptr, json.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                        : NULL;

    if (value) {
        print_safe_lines(out, (struct span){json_string_value(value), json_string_length(value)});
    } else {
        print_safe(out, json);
    }
    json_decref(value);
}

int answer_print_members(const json_t *root, struct span text, const struct answer_view *view,
                         struct buf *out)
{
    struct json_tokens tokens;

    (void)root, (void)view;
    json_tokens_init(&tokens);
    if (json_tokens_read(&tokens, text) < 0) {
        return -ENOMEM;
    }
    for (int at = 1; at + 1 < tokens.count; at = json_tokens_behind(&tokens, at + 1)) {
        const struct span quoted = json_tokens_raw(text, &tokens.all[at]);
        const size_t len = quoted.len - 2;

        print_value(quoted, out);
        (void)buf_appendf(out, "%*s  ", len < NAME_WIDTH ? NAME_WIDTH - (int)len : 0, "");
        print_value(json_tokens_raw(text, &tokens.all[at + 1]), out);
        (void)buf_append_str(out, "\n");
    }
    json_tokens_done(&tokens);
    return 0;
}

/* ---- what an operation did ---- */

/* "ID WHAT\n" */
static int print_done(const json_t *root, const char *what, const struct answer_view *view,
                      struct buf *out)
{
    if (!answer_text(root, "id")[0] || !what[0]) {
        return -EINVAL;
    }
    print_safe(out, span_of(answer_text(root, "id")));
    (void)buf_append_str(out, " ");
    style_add(out, style_of_status(span_of(what)), view->is_coloured, span_of(what));
    return buf_append_str(out, "\n");
}

int answer_print_retried(const json_t *root, struct span text, const struct answer_view *view,
                         struct buf *out)
{
    const char *status = answer_text(root, "status");

    (void)text;
    /* One that has been sent again and has left since has no status. */
    return print_done(root, status[0] ? status : answer_text(root, "result"), view, out);
}

/* What a result means where the ID is not the one that was asked about. */
static const struct {
    const char *result, *meaning;
} meanings[] = {
    {"follow_up", "follow_up (a new entry, sent behind it)"},
    {"replaced", "replaced (a new entry takes its place)"},
};

int answer_print_changed(const json_t *root, struct span text, const struct answer_view *view,
                         struct buf *out)
{
    const char *result = answer_text(root, "result");

    (void)text;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (strcmp(meanings[i].result, result) == 0) {
            return print_done(root, meanings[i].meaning, view, out);
        }
    }
    return print_done(root, result, view, out);
}

/* ---- the whole answer ---- */

json_t *answer_parse(const struct http_answer *answer)
{
    return json_loadb(answer->body.bytes ? answer->body.bytes : "", answer->body.len,
                      JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

int answer_print(const struct http_answer *answer, answer_print_fn *print,
                 const struct answer_view *view)
{
    json_t *root = answer_parse(answer);
    struct buf out;

    buf_init(&out, TEXT_MAX);
    int err = json_is_object(root)
                  ? print(root, (struct span){answer->body.bytes, answer->body.len}, view, &out)
                  : -EINVAL;

    if (err == 0 && out.failed) {
        err = -ENOMEM;
    }
    if (err == 0 && out.len > 0) {
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
    json_t *root = answer_parse(answer);
    struct buf out;

    buf_init(&out, TEXT_MAX);
    const int exit_code = explain_problem(root, answer->status, server, &out);

    fprintf(stderr, "outboxctl: %s", out.bytes && !out.failed ? out.bytes : "out of memory\n");
    buf_done(&out);
    json_decref(root);
    return exit_code;
}
