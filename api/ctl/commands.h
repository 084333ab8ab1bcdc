/* The commands and options of outboxctl, as commands.def and options.def declare them. Pure. */
#ifndef API_CTL_COMMANDS_H
#define API_CTL_COMMANDS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/span.h"

enum command_id {
#define COMMAND(id, name, alias, group, arguments, summary, about, examples) COMMAND_##id,
#include "api/ctl/commands.def"
    COMMAND_COUNT,
};

enum command_group {
    COMMAND_GROUP_LOOK,
    COMMAND_GROUP_ENTRY,
    COMMAND_GROUP_WORKSPACE,
    COMMAND_GROUP_ACCESS,
    COMMAND_GROUP_COUNT,
};

struct command {
    enum command_id id;
    enum command_group group;
    const char *name, *alias; /* alias: NULL without */
    const char *arguments, *summary, *about, *examples;
};

enum option_id {
#define OPTION(id, letter, name, type, argument, commands, help) OPTION_##id,
#include "api/ctl/options.def"
    OPTION_COUNT,
};

enum option_type {
    OPTION_TYPE_FLAG,
    OPTION_TYPE_TEXT,
    OPTION_TYPE_FILE,
    OPTION_TYPE_FOLDER,
    OPTION_TYPE_CHOICE,
    OPTION_TYPE_CHOICES,
    OPTION_TYPE_LIST,
    OPTION_TYPE_COUNT,
    OPTION_TYPE_DURATION,
    OPTION_TYPE_HELP, /* a flag that may have a value */
};

struct option_row {
    enum option_id id;
    enum option_type type;
    char letter; /* 0: none */
    const char *name, *argument, *help;
    uint64_t commands; /* a bit each */
};

const struct command *command_get(enum command_id id);
/* By name or alias; NULL. */
const struct command *command_find(const char *name);
/* The name that was probably meant; NULL: none is near. */
const char *command_nearest(const char *name);
/* What a group of commands is called. */
const char *command_group_title(enum command_group group);

const struct option_row *option_get(enum option_id id);
/* With its dashes taken off; NULL. */
const struct option_row *option_find(struct span name);
bool option_takes_value(const struct option_row *option);
/* Every command takes it. */
bool option_is_general(const struct option_row *option);
bool command_takes_option(const struct command *command, const struct option_row *option);

/* How many arguments a command takes, as its row writes them. */
#define COMMAND_ARGUMENTS_ANY INT_MAX
void command_arguments(const struct command *command, int *ret_min, int *ret_max);
/* What the argument at `index` (0 is the first behind the name) stands for: "WORKSPACE",
 * "ID|SESSION", "unverifiable|parked-errors"; empty beyond the last. */
struct span command_argument(const struct command *command, int index);

/* The next word of a list, taken off its front; false at the end. */
bool span_next_word(struct span *list, char between, struct span *ret);
/* Whether `word` is one of a list like "auto|always|never". */
bool words_contain(const char *words, struct span word);

#endif
