/* outboxctl: reads its command line and hands over to the command. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/completion.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/help.h"
#include "api/ctl/run.h"

int command_help(const struct options *options)
{
    const char *name = options_argument(options, 0);
    const struct command *command = name ? command_find(name) : NULL;

    if (name && !command) {
        options_complain(options, "there is no command \"%s\"", name);
        return EXIT_CODE_USAGE;
    }
    help_print(command, false);
    return EXIT_CODE_OK;
}

static int run(const struct options *options)
{
    static command_run_fn *const functions[COMMAND_COUNT] = {
#define COMMAND(id, name, alias, group, arguments, summary, about, examples)                       \
    [COMMAND_##id] = command_##name,
#include "api/ctl/commands.def"
    };

    return functions[options->command->id](options);
}

int main(int argc, char **argv)
{
    struct options options;
    int result;

    if (argc > 1 && strcmp(argv[1], COMPLETION_WORD) == 0) {
        return completion_run(argc - 2, argv + 2);
    }
    switch (options_read(argc, argv, &options)) {
    case OPTIONS_DONE:
        return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILED;
    case OPTIONS_USAGE:
        return EXIT_CODE_USAGE;
    case OPTIONS_RUN:
        break;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        return EXIT_CODE_FAILED;
    }
    result = run(&options);
    curl_global_cleanup();
    return result;
}
