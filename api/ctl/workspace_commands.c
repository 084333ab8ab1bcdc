/* Park, unpark, pause, resume, sweep, cleanup, workspaces, target. Passwords and secrets come from
 * files or from standard input, never from the command line, which others can see. */
#include "api/ctl/workspace_commands.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/exit_code.h"
#include "api/ctl/options.h"
#include "common/base/err.h"
#include "common/core/keys.h"

#define SECRETS_FILE_MAX 4096

static int workspace_call(const struct options *options, const char *method, const char *behind,
                          struct call *call)
{
    if (!command_is_workspace(options->arguments[1])) {
        return EXIT_CODE_USAGE;
    }
    call->method = method;
    buf_appendf(&call->path, "/v1/workspaces/%s%s", options->arguments[1], behind);
    return EXIT_CODE_OK;
}

/* The body becomes `object`, which is taken over. */
static int give_body(json_t *object, struct call *call)
{
    AUTO_FREE char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    json_decref(object);
    if (!text) {
        options_complain("all texts must be UTF-8");
        return EXIT_CODE_USAGE;
    }
    buf_append_str(&call->body, text);
    return EXIT_CODE_OK;
}

int make_park(const struct options *options, struct call *call)
{
    const char *reason = options->argument_count > 2 ? options->arguments[2] : "";
    const int result = workspace_call(options, "POST", "/park", call);

    return result != EXIT_CODE_OK ? result : give_body(json_pack("{s:s}", "reason", reason), call);
}

int make_unpark(const struct options *options, struct call *call)
{
    return workspace_call(options, "POST", "/unpark", call);
}

int make_pause(const struct options *options, struct call *call)
{
    return workspace_call(options, "POST", "/pause", call);
}

int make_resume(const struct options *options, struct call *call)
{
    return workspace_call(options, "POST", "/resume", call);
}

int make_sweep(const struct options *options, struct call *call)
{
    const int result = workspace_call(options, "POST", "/sweep", call);

    return result != EXIT_CODE_OK
               ? result
               : give_body(json_pack("{s:s}", "what", options->arguments[2]), call);
}

int make_cleanup(const struct options *options, struct call *call)
{
    return workspace_call(options, "DELETE", "", call);
}

int make_workspaces(const struct options *options, struct call *call)
{
    char after[WORKSPACE_ENC_MAX + 1] = "";

    if (options->argument_count > 1) {
        return workspace_call(options, "GET", "", call);
    }
    if (options->after &&
        (!command_is_workspace(options->after) ||
         percent_encode(options->after, strlen(options->after), after, sizeof(after)) < 0)) {
        return EXIT_CODE_USAGE;
    }
    call->method = "GET";
    buf_appendf(&call->path, "/v1/workspaces?limit=500&after=%s", after);
    return EXIT_CODE_OK;
}

/* ---- target ---- */

/* All of a file ("-": standard input), at most `cap` - 1 bytes, its last line feed taken off. */
static bool read_file(const char *path, char *room, size_t cap)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "r");

    if (!file) {
        fprintf(stderr, "outboxctl: cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    const size_t len = fread(room, 1, cap, file);
    const bool is_fine = !ferror(file) && len < cap;

    if (!is_stdin) {
        fclose(file);
    }
    if (!is_fine || memchr(room, '\0', len)) {
        fprintf(stderr, "outboxctl: %s cannot be read, is too long or holds NUL\n", path);
        return false;
    }
    room[len] = '\0';
    if (len > 0 && room[len - 1] == '\n') {
        room[len - 1] = '\0';
    }
    return true;
}

static bool add_secrets(json_t *target, const char *path)
{
    char room[SECRETS_FILE_MAX];
    json_t *secrets = json_array();
    char *save = NULL;

    if (!read_file(path, room, sizeof(room))) {
        json_decref(secrets);
        return false;
    }
    for (char *line = strtok_r(room, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        json_array_append_new(secrets, json_string(line));
    }
    return json_object_set_new(target, "secrets", secrets) == 0;
}

static bool add_password(json_t *target, const char *path)
{
    char room[SECRETS_FILE_MAX];

    return read_file(path, room, sizeof(room)) &&
           json_object_set_new(target, "password", json_string(room)) == 0;
}

int make_target(const struct options *options, struct call *call)
{
    const char *url = options->argument_count > 2 ? options->arguments[2] : NULL;
    const bool has_more =
        options->executor || options->username || options->password_file || options->secrets_file;

    if ((url && options->is_delete) || (!url && has_more)) {
        options_complain("target takes a URL (with options), --delete, or nothing");
        return EXIT_CODE_USAGE;
    }
    const int result = workspace_call(
        options, url ? "PUT" : (options->is_delete ? "DELETE" : "GET"), "/target", call);

    if (result != EXIT_CODE_OK || !url) {
        return result;
    }
    json_t *target = json_pack("{s:s, s:s*, s:s*}", "url", url, "executor", options->executor,
                               "username", options->username);

    if (target && ((options->password_file && !add_password(target, options->password_file)) ||
                   (options->secrets_file && !add_secrets(target, options->secrets_file)))) {
        json_decref(target);
        return EXIT_CODE_FAILED;
    }
    return give_body(target, call);
}
