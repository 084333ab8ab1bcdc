/* The function of each command: declared from the table of commands. */
#ifndef API_CTL_RUN_H
#define API_CTL_RUN_H

#include "api/ctl/options.h"

/* Does what the command line asks; says what went wrong on stderr. Returns an enum exit_code. */
typedef int command_run_fn(const struct options *options);

#define COMMAND(id, name, alias, group, arguments, summary, about, examples)                       \
    command_run_fn command_##name;
#include "api/ctl/commands.def"

#endif
