/* The commands that ask the API: list, show, retry, remove, send, events. */
#ifndef API_CTL_COMMANDS_H
#define API_CTL_COMMANDS_H

#include <stdbool.h>

struct options;

/* Whether there is a command of that name here (`top` is none). */
bool command_exists(const char *name);
/* Runs options->arguments[0]; says what went wrong on stderr. Returns an enum exit_code. */
int command_run(const struct options *options);

#endif
