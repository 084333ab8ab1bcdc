/* From arguments to one API call, and from its answer to what is printed and the exit code. The
 * table at the end is the list of commands. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/answers.h"
#include "api/ctl/entry_commands.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/follow.h"
#include "api/ctl/http_client.h"
#include "api/ctl/options.h"
#include "api/ctl/workspace_commands.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/core/keys.h"

#define PATH_LEN_MAX ((size_t)16 * 1024)
#define BODY_MAX     ((size_t)64 * 1024 * 1024)

/* ---- the call ---- */

bool command_is_workspace(const char *name)
{
    if (workspace_name_is_valid(name, strlen(name))) {
        return true;
    }
    options_complain("\"%s\" is no workspace: 1 to 64 of A-Z a-z 0-9 . _ : ~ %% -", name);
    return false;
}

/* ---- the table ---- */

struct command {
    const char *name;
    int arguments_min, arguments_max; /* behind the name */
    const char *usage;
    command_make_fn *make; /* NULL: a stream (follow.h) */
    answer_print_fn *print;
    bool is_send;
};

static const struct command commands[] = {
    {"list", 2, 2, "WORKSPACE SESSION", make_list, answer_print_list, false},
    {"show", 2, 2, "WORKSPACE ID", make_show, answer_print_entry, false},
    {"retry", 2, 2, "WORKSPACE ID", make_retry, answer_print_retried, false},
    {"remove", 2, 2, "WORKSPACE ID", make_remove, answer_print_changed, false},
    {"edit", 2, 2, "WORKSPACE ID --text T | --text-file F | --payload JSON | --model JSON",
     make_edit, answer_print_changed, false},
    {"confirm", 2, 3, "WORKSPACE (ID | SESSION CMID) [--result JSON]", make_confirm,
     answer_print_members, false},
    {"send", 2, 3, "WORKSPACE SESSION TEXT", make_send, answer_print_accepted, true},
    {"events", 0, 2, "[WORKSPACE [SESSION]]", NULL, NULL, false},
    {"park", 1, 2, "WORKSPACE [REASON]", make_park, answer_print_members, false},
    {"unpark", 1, 1, "WORKSPACE", make_unpark, answer_print_members, false},
    {"pause", 1, 1, "WORKSPACE", make_pause, answer_print_members, false},
    {"resume", 1, 1, "WORKSPACE", make_resume, answer_print_members, false},
    {"sweep", 2, 2, "WORKSPACE unverifiable|parked-errors", make_sweep, answer_print_members,
     false},
    {"cleanup", 1, 1, "WORKSPACE", make_cleanup, answer_print_members, false},
    {"workspaces", 0, 1, "[WORKSPACE]", make_workspaces, answer_print_workspaces, false},
    {"target", 1, 2, "WORKSPACE [URL]", make_target, answer_print_members, false},
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

bool command_exists(const char *name)
{
    return find(name) != NULL;
}

/* ---- running it ---- */

static struct http_client *connect_client(const struct options *options)
{
    const char *token_file = getenv("OUTBOXCTL_TOKEN_FILE");
    const char *mistake = NULL;
    AUTO_FREE char *token = NULL;

    if (token_file && token_file[0]) {
        const int err = http_token_read(token_file, &token);

        if (err < 0) {
            fprintf(stderr, "outboxctl: cannot read a token from %s (OUTBOXCTL_TOKEN_FILE): %s\n",
                    token_file, err == -EINVAL ? "it must hold one line" : strerror(-err));
            return NULL;
        }
    }
    struct http_client *client = http_client_create(options->server, token, &mistake);

    if (!client) {
        fprintf(stderr, "outboxctl: \"%s\": %s\n", options->server, mistake);
    }
    return client;
}

static int finish(const struct options *options, const struct command *command,
                  const struct http_answer *answer)
{
    const bool is_ok = answer->status >= 200 && answer->status < 300;

    if (options->is_json) {
        answer_pass_through(answer);
    }
    if (!is_ok) {
        return answer_explain(answer, options->server);
    }
    if (!options->is_json && answer_print(answer, command->print, clock_wall_ms()) < 0) {
        fprintf(stderr, "outboxctl: the answer of %s is not one of outboxd's\n", options->server);
        return EXIT_CODE_FAILED;
    }
    if (fflush(stdout) != 0) {
        perror("outboxctl: standard output");
        return EXIT_CODE_FAILED;
    }
    return EXIT_CODE_OK;
}

static int perform(const struct options *options, const struct command *command,
                   const struct call *call)
{
    struct http_client *client = connect_client(options);
    struct http_answer answer;
    int result;

    if (!client) {
        return EXIT_CODE_USAGE;
    }
    if (http_client_call(client, call->method, call->path.bytes,
                         (struct span){call->body.bytes, call->body.len}, &answer) < 0) {
        fprintf(stderr, "outboxctl: no answer from %s: %s\n", options->server,
                http_client_mistake(client));
        if (command->is_send && http_client_may_have_arrived(client)) {
            fputs(options->client_message_id
                      ? "The message may have been accepted: repeat with the same --id.\n"
                      : "The message may have been accepted; only with --id is a repeat safe.\n",
                  stderr);
        }
        result = EXIT_CODE_FAILED;
    } else {
        result = finish(options, command, &answer);
        http_answer_done(&answer);
    }
    http_client_destroy(&client);
    return result;
}

static int follow(const struct options *options)
{
    struct http_client *client = connect_client(options);
    const int result = client ? follow_run(options, client) : EXIT_CODE_USAGE;

    http_client_destroy(&client);
    return result;
}

int command_run(const struct options *options)
{
    const struct command *command = find(options->arguments[0]);
    const int count = options->argument_count - 1;
    struct call call = {0};

    if (!command || count < command->arguments_min || count > command->arguments_max) {
        options_complain("usage: outboxctl %s %s", options->arguments[0],
                         command ? command->usage : "");
        return EXIT_CODE_USAGE;
    }
    if (!command->make) {
        return follow(options);
    }
    buf_init(&call.path, PATH_LEN_MAX);
    buf_init(&call.body, BODY_MAX);
    int result = command->make(options, &call);

    if (result == EXIT_CODE_OK && (call.path.failed || call.body.failed)) {
        fputs("outboxctl: the message is too long\n", stderr);
        result = EXIT_CODE_FAILED;
    } else if (result == EXIT_CODE_OK) {
        result = perform(options, command, &call);
    }
    buf_done(&call.path);
    buf_done(&call.body);
    return result;
}
