/* Park, unpark, pause, resume, sweep, target, cleanup: what people do to a whole workspace.
 * Passwords and secrets come from files or from standard input, never from the command line, which
 * others can see. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/read_file.h"
#include "api/ctl/run.h"
#include "common/base/err.h"

#define SECRETS_FILE_MAX ((size_t)64 * 1024)

/* ---- without more than a name ---- */

static int make_park(const struct options *options, struct call *call)
{
    const char *reason = options_argument(options, 1);
    const int result = call_workspace(options, "POST", "/park", call);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    call->is_long = true;
    if (!call_add_text(options, call, "reason", reason ? reason : "")) {
        return EXIT_CODE_USAGE;
    }
    call_end_body(call);
    return EXIT_CODE_OK;
}

int command_park(const struct options *options)
{
    return asking_run(options, make_park, answer_print_members);
}

static int make_unpark(const struct options *options, struct call *call)
{
    call->is_long = true;
    return call_workspace(options, "POST", "/unpark", call);
}

int command_unpark(const struct options *options)
{
    return asking_run(options, make_unpark, answer_print_members);
}

static int make_pause(const struct options *options, struct call *call)
{
    return call_workspace(options, "POST", "/pause", call);
}

int command_pause(const struct options *options)
{
    return asking_run(options, make_pause, answer_print_members);
}

static int make_resume(const struct options *options, struct call *call)
{
    return call_workspace(options, "POST", "/resume", call);
}

int command_resume(const struct options *options)
{
    return asking_run(options, make_resume, answer_print_members);
}

static int make_sweep(const struct options *options, struct call *call)
{
    const char *what = options_argument(options, 1);
    const struct span choices = command_argument(options->command, 1);
    char words[64];
    const int result = call_workspace(options, "POST", "/sweep", call);

    if (result != EXIT_CODE_OK) {
        return result;
    }
    snprintf(words, sizeof(words), "%.*s", (int)choices.len, choices.ptr);
    if (!words_contain(words, span_of(what))) {
        options_complain(options, "what to sweep must be %s, not \"%s\"", words, what);
        return EXIT_CODE_USAGE;
    }
    call->is_long = true;
    if (!call_add_text(options, call, "what", what)) {
        return EXIT_CODE_USAGE;
    }
    call_end_body(call);
    return EXIT_CODE_OK;
}

int command_sweep(const struct options *options)
{
    return asking_run(options, make_sweep, answer_print_members);
}

/* ---- cleanup ---- */

/* By the name itself: nobody types that without meaning it. */
static bool is_confirmed(const struct options *options)
{
    const char *workspace = options_argument(options, 0);
    char typed[128];

    if (option_is_set(options, OPTION_YES)) {
        return true;
    }
    if (!isatty(STDIN_FILENO)) {
        options_complain(options, "cleanup deletes everything of %s: say --yes to mean it",
                         workspace);
        return false;
    }
    fprintf(stderr,
            "This deletes every entry, tombstone and setting of the workspace %s, for ever.\n"
            "Type its name to go on: ",
            workspace);
    if (fgets(typed, sizeof(typed), stdin)) {
        typed[strcspn(typed, "\n")] = '\0';
        if (strcmp(typed, workspace) == 0) {
            return true;
        }
    }
    fputs("outboxctl: nothing was deleted\n", stderr);
    return false;
}

static int make_cleanup(const struct options *options, struct call *call)
{
    const int result = call_workspace(options, "DELETE", "", call);

    call->is_long = true;
    return result == EXIT_CODE_OK && !is_confirmed(options) ? EXIT_CODE_USAGE : result;
}

int command_cleanup(const struct options *options)
{
    return asking_run(options, make_cleanup, answer_print_members);
}

/* ---- target ---- */

/* The file's lines, each a secret. */
static json_t *read_lines(const char *path)
{
    json_t *lines = json_array();
    struct buf read;

    buf_init(&read, SECRETS_FILE_MAX);
    if (read_file(path, &read)) {
        struct span list = {read.bytes, read.len}, line;

        while (span_next_word(&list, '\n', &line)) {
            json_array_append_new(lines, json_stringn(line.ptr, line.len));
        }
    } else {
        json_decref(lines);
        lines = NULL;
    }
    buf_done(&read);
    return lines;
}

/* What stands behind --password-file and --secrets-file, into the target. */
static bool add_secrets(const struct options *options, json_t *target)
{
    const char *password_file = option_text(options, OPTION_PASSWORD_FILE);
    const char *secrets_file = option_text(options, OPTION_SECRETS_FILE);

    if (secrets_file) {
        json_t *secrets = read_lines(secrets_file);

        if (!secrets || json_object_set_new(target, "secrets", secrets) < 0) {
            return false;
        }
    }
    if (password_file) {
        json_t *lines = read_lines(password_file);
        json_t *password = json_array_get(lines, 0);

        if (!password) {
            if (lines) {
                fprintf(stderr, "outboxctl: %s holds no password\n", password_file);
            }
            json_decref(lines);
            return false;
        }
        json_object_set(target, "password", password);
        json_decref(lines);
    }
    return true;
}

static int give_target(const struct options *options, const char *url, struct call *call)
{
    json_t *target = json_pack("{s:s, s:s*, s:s*}", "url", url, "executor",
                               option_text(options, OPTION_EXECUTOR), "username",
                               option_text(options, OPTION_USERNAME));

    if (!target) {
        options_complain(options, "all texts must be UTF-8");
        return EXIT_CODE_USAGE;
    }
    if (!add_secrets(options, target)) {
        json_decref(target);
        return EXIT_CODE_USAGE;
    }
    AUTO_FREE char *text = json_dumps(target, JSON_COMPACT);

    json_decref(target);
    (void)buf_append_str(&call->body, text ? text : "");
    return EXIT_CODE_OK;
}

static int make_target(const struct options *options, struct call *call)
{
    const char *url = options_argument(options, 1);
    const bool is_delete = option_is_set(options, OPTION_DELETE);
    const bool has_more =
        option_is_set(options, OPTION_EXECUTOR) || option_is_set(options, OPTION_USERNAME) ||
        option_is_set(options, OPTION_PASSWORD_FILE) || option_is_set(options, OPTION_SECRETS_FILE);

    if ((url && is_delete) || (!url && has_more)) {
        options_complain(options, "target takes a URL (with options), --delete, or nothing");
        return EXIT_CODE_USAGE;
    }
    const int result =
        call_workspace(options, url ? "PUT" : (is_delete ? "DELETE" : "GET"), "/target", call);

    return result == EXIT_CODE_OK && url ? give_target(options, url, call) : result;
}

int command_target(const struct options *options)
{
    return asking_run(options, make_target, answer_print_members);
}
