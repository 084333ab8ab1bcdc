/* The commands that are about entries. */
#ifndef API_CTL_ENTRY_COMMANDS_H
#define API_CTL_ENTRY_COMMANDS_H

#include "api/ctl/commands.h"

command_make_fn make_list, make_show, make_retry, make_remove, make_send, make_edit, make_confirm;

#endif
