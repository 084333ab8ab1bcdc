/* List, show, send, and what people do to an entry. JSON goes out as it was given: only checked,
 * never written anew, so that no number loses a digit. */
#include "api/ctl/entry_commands.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/exit_code.h"
#include "api/ctl/options.h"
#include "common/base/err.h"
#include "common/core/keys.h"
#include "common/core/span.h"

#define ID_MAX   1024
#define READ_MAX ((size_t)64 * 1024 * 1024)

/* ---- where it goes ---- */

static bool is_session(const char *name)
{
    if (session_name_is_valid(name, strlen(name))) {
        return true;
    }
    options_complain("\"%s\" is no session: 1 to 128 of A-Z a-z 0-9 . _ : ~ %% -", name);
    return false;
}

static int session_path(const struct options *options, struct call *call)
{
    if (!command_is_workspace(options->arguments[1]) || !is_session(options->arguments[2])) {
        return EXIT_CODE_USAGE;
    }
    buf_appendf(&call->path, "/v1/workspaces/%s/sessions/%s/entries", options->arguments[1],
                options->arguments[2]);
    return EXIT_CODE_OK;
}

static int entry_path(const struct options *options, const char *behind, struct call *call)
{
    const char *id = options->arguments[2];
    char encoded[3 * ID_MAX + 1];

    if (!command_is_workspace(options->arguments[1])) {
        return EXIT_CODE_USAGE;
    }
    if (id[0] == '\0' || percent_encode(id, strlen(id), encoded, sizeof(encoded)) < 0) {
        options_complain("\"%s\" is no entry ID", id);
        return EXIT_CODE_USAGE;
    }
    buf_appendf(&call->path, "/v1/workspaces/%s/entries/%s%s", options->arguments[1], encoded,
                behind);
    return EXIT_CODE_OK;
}

int make_list(const struct options *options, struct call *call)
{
    call->method = "GET";
    return session_path(options, call);
}

int make_show(const struct options *options, struct call *call)
{
    call->method = "GET";
    return entry_path(options, "", call);
}

int make_retry(const struct options *options, struct call *call)
{
    call->method = "POST";
    return entry_path(options, "/retry", call);
}

int make_remove(const struct options *options, struct call *call)
{
    call->method = "DELETE";
    return entry_path(options, "", call);
}

/* ---- what goes along ---- */

/* `name` and its JSON, with whatever separates it from what stands before. */
static void add_member(struct buf *body, const char *name, const char *json)
{
    buf_appendf(body, "%s\"%s\":%s", body->len == 0 ? "{" : ",", name, json);
}

static bool add_text(struct buf *body, const char *name, const char *text)
{
    json_t *string = json_string(text); /* NULL unless it is UTF-8 */
    AUTO_FREE char *json = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

    json_decref(string);
    if (!json) {
        options_complain("%s must be UTF-8", name);
        return false;
    }
    add_member(body, name, json);
    return true;
}

/* All of a file ("-": standard input), at most READ_MAX bytes. */
static bool read_file(const char *path, struct buf *ret)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "r");
    char room[4096];
    size_t len;

    if (!file) {
        fprintf(stderr, "outboxctl: cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    while ((len = fread(room, 1, sizeof(room), file)) > 0 && !ret->failed) {
        buf_append(ret, room, len);
    }
    const bool is_fine = !ferror(file) && !ret->failed;

    if (!is_stdin) {
        (void)fclose(file);
    }
    if (!is_fine) {
        fprintf(stderr, "outboxctl: cannot read %s, or it is too long\n", path);
    }
    return is_fine;
}

static bool add_json(struct buf *body, const char *name, struct span text)
{
    json_error_t error;
    json_t *value = json_loadb(text.ptr, text.len,
                               JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);

    if (!value) {
        options_complain("--%s is no JSON: %s", name, error.text);
        return false;
    }
    json_decref(value);
    buf_appendf(body, "%s\"%s\":", body->len == 0 ? "{" : ",", name);
    buf_append(body, text.ptr, text.len);
    return true;
}

/* `argument` as JSON, or what standard input holds for "-". NULL: the option was not given. */
static bool add_json_option(struct buf *body, const char *name, const char *argument)
{
    struct buf read;

    if (!argument) {
        return true;
    }
    if (strcmp(argument, "-") != 0) {
        return add_json(body, name, span_of(argument));
    }
    buf_init(&read, READ_MAX);
    const bool is_added =
        read_file(argument, &read) &&
        add_json(body, name, (struct span){read.bytes ? read.bytes : "", read.len});

    buf_done(&read);
    return is_added;
}

static bool add_text_file(struct buf *body, const char *path)
{
    struct buf read;

    if (!path) {
        return true;
    }
    buf_init(&read, READ_MAX);
    bool is_added = read_file(path, &read);

    if (is_added && read.len > 0 && memchr(read.bytes, '\0', read.len)) {
        options_complain("%s holds a NUL character: that is no text", path);
        is_added = false;
    }
    is_added = is_added && add_text(body, "text", read.len > 0 ? read.bytes : "");
    buf_done(&read);
    return is_added;
}

/* IDs apart by commas. */
static bool add_depends_on(struct buf *body, const char *ids)
{
    if (!ids) {
        return true;
    }
    json_t *list = json_array();

    for (const char *at = ids;; at++) {
        const size_t len = strcspn(at, ",");

        if (len == 0 || json_array_append_new(list, json_stringn(at, len)) < 0) {
            options_complain("--depends-on needs entry IDs, apart by commas");
            json_decref(list);
            return false;
        }
        at += len;
        if (*at == '\0') {
            break;
        }
    }
    AUTO_FREE char *json = json_dumps(list, JSON_COMPACT);

    json_decref(list);
    if (!json) {
        return false;
    }
    add_member(body, "dependsOn", json);
    return true;
}

/* ---- send, edit, confirm ---- */

int make_send(const struct options *options, struct call *call)
{
    const char *text = options->argument_count > 3 ? options->arguments[3] : NULL;
    const int result = session_path(options, call);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    if (!text && !options->payload) {
        options_complain("send needs a TEXT, or --kind and --payload");
        return EXIT_CODE_USAGE;
    }
    if (options->payload && !options->kind) {
        options_complain("--payload needs --kind");
        return EXIT_CODE_USAGE;
    }
    call->method = "POST";
    if ((options->client_message_id &&
         !add_text(&call->body, "clientMessageID", options->client_message_id)) ||
        (options->kind && !add_text(&call->body, "kind", options->kind)) ||
        (text && !add_text(&call->body, "text", text)) ||
        !add_json_option(&call->body, "payload", options->payload) ||
        !add_depends_on(&call->body, options->depends_on)) {
        return EXIT_CODE_USAGE;
    }
    buf_append_str(&call->body, "}");
    return EXIT_CODE_OK;
}

int make_edit(const struct options *options, struct call *call)
{
    const int result = entry_path(options, "", call);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    if (options->text && options->text_file) {
        options_complain("--text and --text-file are two texts");
        return EXIT_CODE_USAGE;
    }
    call->method = "PATCH";
    if ((options->text && !add_text(&call->body, "text", options->text)) ||
        !add_text_file(&call->body, options->text_file) ||
        !add_json_option(&call->body, "payload", options->payload) ||
        !add_json_option(&call->body, "model", options->model)) {
        return EXIT_CODE_USAGE;
    }
    if (call->body.len == 0) {
        options_complain("edit needs --text, --text-file, --payload or --model");
        return EXIT_CODE_USAGE;
    }
    buf_append_str(&call->body, "}");
    return EXIT_CODE_OK;
}

/* By entry ID, or by session and clientMessageID. */
int make_confirm(const struct options *options, struct call *call)
{
    const char *who = options->arguments[2];
    const char *client_message_id = options->argument_count > 3 ? options->arguments[3] : NULL;

    if (!command_is_workspace(options->arguments[1]) || (client_message_id && !is_session(who))) {
        return EXIT_CODE_USAGE;
    }
    call->method = "POST";
    buf_appendf(&call->path, "/v1/workspaces/%s/confirm", options->arguments[1]);
    if (!add_text(&call->body, client_message_id ? "sessionID" : "entryID", who) ||
        (client_message_id && !add_text(&call->body, "clientMessageID", client_message_id)) ||
        !add_json_option(&call->body, "result", options->result)) {
        return EXIT_CODE_USAGE;
    }
    buf_append_str(&call->body, "}");
    return EXIT_CODE_OK;
}
