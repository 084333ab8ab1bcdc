/* Load generator for an HTTP accept endpoint: unique messages over kept connections, as fast as
 * they are answered or at a fixed rate. Each message's times are logged, so that bench-check can
 * lay them beside the target's log. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/load.h"

int main(int argc, char **argv)
{
    struct load_options options;
    struct load_result result = {0};

    if (load_options_parse(argc, argv, &options) < 0) {
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    load_run(&options, &result);
    load_report_print(&options, &result);
    int err = options.log_path ? load_report_write(&options, &result) : 0;

    if (err < 0) {
        fprintf(stderr, "load: cannot write %s: %s\n", options.log_path, strerror(-err));
    }
    free(result.items);
    return err < 0 ? 1 : 0;
}
