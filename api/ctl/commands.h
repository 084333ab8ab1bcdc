/* The commands that ask the API: all but `top`. */
#ifndef API_CTL_COMMANDS_H
#define API_CTL_COMMANDS_H

#include <stdbool.h>

#include "common/core/buf.h"

struct options;

/* One request to the API. */
struct call {
    const char *method;
    struct buf path, body;
};
/* Fills the call in from the command line; an enum exit_code, what is wrong said on stderr. */
typedef int command_make_fn(const struct options *options, struct call *call);

/* Whether there is a command of that name here (`top` is none). */
bool command_exists(const char *name);
/* Whether a workspace may be called so; says on stderr if not. */
bool command_is_workspace(const char *name);
/* Runs options->arguments[0]; says what went wrong on stderr. Returns an enum exit_code. */
int command_run(const struct options *options);

#endif
