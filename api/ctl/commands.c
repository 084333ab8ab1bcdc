/* The two tables and what can be read off them. */
#include "api/ctl/commands.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 32 /* longer words are nobody's misspelling */

static const struct command commands[COMMAND_COUNT] = {
#define COMMAND(id_, name_, alias_, group_, arguments_, summary_, about_, examples_)               \
    [COMMAND_##id_] = {                                                                            \
        .id = COMMAND_##id_,                                                                       \
        .group = COMMAND_GROUP_##group_,                                                           \
        .name = #name_,                                                                            \
        .alias = (alias_),                                                                         \
        .arguments = (arguments_),                                                                 \
        .summary = (summary_),                                                                     \
        .about = (about_),                                                                         \
        .examples = (examples_),                                                                   \
    },
#include "api/ctl/commands.def"
};

static_assert(COMMAND_COUNT <= 64, "a bit each");

#define ALL     UINT64_MAX
#define FOR(id) (UINT64_C(1) << COMMAND_##id)
static const struct option_row options[OPTION_COUNT] = {
#define OPTION(id_, letter_, name_, type_, argument_, commands_, help_)                            \
    [OPTION_##id_] = {                                                                             \
        .id = OPTION_##id_,                                                                        \
        .type = OPTION_TYPE_##type_,                                                               \
        .letter = (letter_),                                                                       \
        .name = (name_),                                                                           \
        .argument = (argument_),                                                                   \
        .commands = (commands_),                                                                   \
        .help = (help_),                                                                           \
    },
#include "api/ctl/options.def"
};

const struct command *command_get(enum command_id id)
{
    assert((unsigned)id < COMMAND_COUNT);
    return &commands[id];
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = &commands[i];

        if (strcmp(command->name, name) == 0 ||
            (command->alias && strcmp(command->alias, name) == 0)) {
            return command;
        }
    }
    return NULL;
}

const char *command_group_title(enum command_group group)
{
    static const char *const titles[COMMAND_GROUP_COUNT] = {
        [COMMAND_GROUP_LOOK] = "Look",
        [COMMAND_GROUP_ENTRY] = "Entries",
        [COMMAND_GROUP_WORKSPACE] = "Workspaces",
        [COMMAND_GROUP_ACCESS] = "Access",
    };

    return titles[group];
}

/* ---- misspellings ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that make one word the other
 * (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][NAME_MAX_LEN + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    const size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > NAME_MAX_LEN || b_len > NAME_MAX_LEN) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_len; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        size_t *const free_row = before;

        before = last;
        last = row;
        row = free_row;
    }
    return last[b_len];
}

const char *command_nearest(const char *name)
{
    const size_t len = strlen(name);
    const char *nearest = NULL;
    size_t best = len < 5 ? 2 : 3; /* that far is another word */

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const char *names[] = {commands[i].name, commands[i].alias};

        for (size_t k = 0; k < 2 && names[k]; k++) {
            const bool begins_so = len >= 2 && strncmp(names[k], name, len) == 0;
            const size_t apart = begins_so ? 1 : distance(name, names[k]);

            if (apart < best) {
                best = apart;
                nearest = names[k];
            }
        }
    }
    return nearest;
}

/* ---- options ---- */

const struct option_row *option_get(enum option_id id)
{
    assert((unsigned)id < OPTION_COUNT);
    return &options[id];
}

const struct option_row *option_find(struct span name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const bool is_letter =
            name.len == 1 && options[i].letter != 0 && options[i].letter == name.ptr[0];

        if (is_letter || span_equal(name, span_of(options[i].name))) {
            return &options[i];
        }
    }
    return NULL;
}

bool option_takes_value(const struct option_row *option)
{
    return option->type != OPTION_TYPE_FLAG && option->type != OPTION_TYPE_HELP;
}

bool option_is_general(const struct option_row *option)
{
    return option->commands == ALL;
}

bool command_takes_option(const struct command *command, const struct option_row *option)
{
    return (option->commands & UINT64_C(1) << command->id) != 0;
}

/* ---- arguments ---- */

bool span_next_word(struct span *list, char between, struct span *ret)
{
    while (list->len > 0 && list->ptr[0] == between) {
        list->ptr++;
        list->len--;
    }
    if (list->len == 0) {
        return false;
    }
    const char *end = memchr(list->ptr, between, list->len);
    const size_t len = end ? (size_t)(end - list->ptr) : list->len;

    *ret = (struct span){list->ptr, len};
    list->ptr += len;
    list->len -= len;
    return true;
}

bool words_contain(const char *words, struct span word)
{
    struct span list = span_of(words), one;

    while (span_next_word(&list, '|', &one)) {
        if (span_equal(one, word)) {
            return true;
        }
    }
    return false;
}

static bool is_repeated(struct span word)
{
    return word.len > 3 && memcmp(word.ptr + word.len - 3, "...", 3) == 0;
}

void command_arguments(const struct command *command, int *ret_min, int *ret_max)
{
    struct span list = span_of(command->arguments), word;

    *ret_min = 0;
    *ret_max = 0;
    while (span_next_word(&list, ' ', &word)) {
        *ret_min += word.ptr[0] != '[';
        *ret_max = is_repeated(word) ? COMMAND_ARGUMENTS_ANY : *ret_max + 1;
    }
}

/* Without brackets and dots. */
static struct span bare(struct span word)
{
    word.len -= is_repeated(word) ? 3 : 0;
    while (word.len > 0 && word.ptr[0] == '[') {
        word.ptr++;
        word.len--;
    }
    while (word.len > 0 && word.ptr[word.len - 1] == ']') {
        word.len--;
    }
    return word;
}

struct span command_argument(const struct command *command, int index)
{
    struct span list = span_of(command->arguments), word;

    for (int i = 0; span_next_word(&list, ' ', &word); i++) {
        if (i == index || is_repeated(word)) {
            return bare(word);
        }
    }
    return (struct span){"", 0};
}
