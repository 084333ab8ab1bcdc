/* outboxctl: reads its command line and hands over to `top` or to a command of the API. */
#include <curl/curl.h>
#include <signal.h>

#include "api/ctl/commands.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/options.h"
#include "api/ctl/top.h"

#include <string.h>

int main(int argc, char **argv)
{
    struct options options;
    int result = EXIT_CODE_USAGE;

    switch (options_read(argc, argv, &options)) {
    case OPTIONS_DONE:
        return EXIT_CODE_OK;
    case OPTIONS_USAGE:
        return EXIT_CODE_USAGE;
    case OPTIONS_RUN:
        break;
    }
    if (strcmp(options.arguments[0], "top") == 0) {
        return top_run(&options);
    }
    if (!command_exists(options.arguments[0])) {
        options_complain("there is no command \"%s\"", options.arguments[0]);
        return EXIT_CODE_USAGE;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        return EXIT_CODE_FAILED;
    }
    result = command_run(&options);
    curl_global_cleanup();
    return result;
}
