/* Paths from checked names, bodies from texts and JSON. */
#include "api/ctl/call.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/exit_code.h"
#include "api/ctl/read_file.h"
#include "common/base/err.h"
#include "common/core/keys.h"

#define PATH_LEN_MAX ((size_t)16 * 1024)
#define BODY_MAX     ((size_t)64 * 1024 * 1024)
#define ID_MAX       1024

void call_init(struct call *call)
{
    *call = (struct call){.method = "GET"};
    buf_init(&call->path, PATH_LEN_MAX);
    buf_init(&call->body, BODY_MAX);
}

void call_done(struct call *call)
{
    buf_done(&call->path);
    buf_done(&call->body);
}

/* ---- where it goes ---- */

bool name_is_workspace(const struct options *options, const char *name)
{
    if (workspace_name_is_valid(name, strlen(name))) {
        return true;
    }
    options_complain(options, "\"%s\" is no workspace: 1 to 64 of A-Z a-z 0-9 . _ : ~ %% -", name);
    return false;
}

bool name_is_session(const struct options *options, const char *name)
{
    if (session_name_is_valid(name, strlen(name))) {
        return true;
    }
    options_complain(options, "\"%s\" is no session: 1 to 128 of A-Z a-z 0-9 . _ : ~ %% -", name);
    return false;
}

int call_workspace(const struct options *options, const char *method, const char *behind,
                   struct call *call)
{
    const char *workspace = options_argument(options, 0);

    if (!name_is_workspace(options, workspace)) {
        return EXIT_CODE_USAGE;
    }
    call->method = method;
    (void)buf_appendf(&call->path, "/v1/workspaces/%s%s", workspace, behind);
    return EXIT_CODE_OK;
}

int call_session(const struct options *options, const char *method, const char *behind,
                 struct call *call)
{
    const char *workspace = options_argument(options, 0), *session = options_argument(options, 1);

    if (!name_is_workspace(options, workspace) || !name_is_session(options, session)) {
        return EXIT_CODE_USAGE;
    }
    call->method = method;
    (void)buf_appendf(&call->path, "/v1/workspaces/%s/sessions/%s%s", workspace, session, behind);
    return EXIT_CODE_OK;
}

int call_entry(const struct options *options, const char *method, const char *id,
               const char *behind, struct call *call)
{
    const char *workspace = options_argument(options, 0);
    char encoded[3 * ID_MAX + 1];

    if (!name_is_workspace(options, workspace)) {
        return EXIT_CODE_USAGE;
    }
    if (id[0] == '\0' || percent_encode(id, strlen(id), encoded, sizeof(encoded)) < 0) {
        options_complain(options, "\"%s\" is no entry ID", id);
        return EXIT_CODE_USAGE;
    }
    call->method = method;
    (void)buf_appendf(&call->path, "/v1/workspaces/%s/entries/%s%s", workspace, encoded, behind);
    return EXIT_CODE_OK;
}

/* ---- what goes along ---- */

static void add_member(struct call *call, const char *name, struct span json)
{
    (void)buf_appendf(&call->body, "%s\"%s\":", call->body.len == 0 ? "{" : ",", name);
    (void)buf_append(&call->body, json.ptr, json.len);
}

bool call_add_text(const struct options *options, struct call *call, const char *name,
                   const char *text)
{
    json_t *string = json_string(text); /* NULL unless it is UTF-8 */
    AUTO_FREE char *json = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

    json_decref(string);
    if (!json) {
        options_complain(options, "%s must be UTF-8", name);
        return false;
    }
    add_member(call, name, span_of(json));
    return true;
}

bool call_add_json(const struct options *options, struct call *call, const char *name,
                   struct span json)
{
    json_error_t error;
    json_t *value = json_loadb(json.ptr, json.len,
                               JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);

    if (!value) {
        options_complain(options, "%s is no JSON: %s", name, error.text);
        return false;
    }
    json_decref(value);
    add_member(call, name, json);
    return true;
}

bool call_add_json_file(const struct options *options, struct call *call, const char *name,
                        const char *path)
{
    struct buf read;

    buf_init(&read, BODY_MAX);
    const bool is_added =
        read_file(path, &read) &&
        call_add_json(options, call, name, (struct span){read.bytes ? read.bytes : "", read.len});

    buf_done(&read);
    return is_added;
}

bool call_add_json_option(const struct options *options, struct call *call, const char *name,
                          enum option_id option)
{
    const char *value = option_text(options, option);

    if (!value) {
        return true;
    }
    return strcmp(value, "-") == 0 ? call_add_json_file(options, call, name, value)
                                   : call_add_json(options, call, name, span_of(value));
}

bool call_add_text_file(const struct options *options, struct call *call, const char *name,
                        const char *path)
{
    struct buf read;

    buf_init(&read, BODY_MAX);
    bool is_added = read_file(path, &read);

    if (is_added && read.len > 0 && memchr(read.bytes, '\0', read.len)) {
        options_complain(options, "%s holds a NUL character: that is no text", path);
        is_added = false;
    }
    is_added = is_added && call_add_text(options, call, name, read.len > 0 ? read.bytes : "");
    buf_done(&read);
    return is_added;
}

void call_end_body(struct call *call)
{
    if (call->body.len > 0) {
        (void)buf_append_str(&call->body, "}");
    }
}
