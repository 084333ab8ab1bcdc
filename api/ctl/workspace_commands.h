/* The calls of outboxctl that concern a whole workspace: what each asks of the API. */
#ifndef API_CTL_WORKSPACE_COMMANDS_H
#define API_CTL_WORKSPACE_COMMANDS_H

#include "api/ctl/commands.h"

command_make_fn make_park, make_unpark, make_pause, make_resume, make_sweep, make_cleanup,
    make_workspaces, make_target;

#endif
