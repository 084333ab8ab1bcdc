/* Help as text of 80 columns. */
#include "api/ctl/help.h"

#include <stdio.h>
#include <string.h>

#include "api/ctl/commands.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "common/core/buf.h"

#define HELP_MAX  ((size_t)1 << 20)
#define COLUMNS   80
#define LEFT_ROOM 72 /* of what stands left of its explanation */

static const char *const overview_examples =
    "  outboxctl status\n"
    "  outboxctl send home anna 'hello'\n"
    "  outboxctl list home --status error\n"
    "  outboxctl show home ob_01ABC\n"
    "  outboxctl tail home\n"
    "  outboxctl --server unix:/run/outboxd/api.sock doctor\n";

static const struct {
    int number;
    const char *meaning;
} exit_codes[] = {
#define EXIT_CODE(id, number, meaning) {number, meaning},
#include "api/ctl/exit_code.def"
};

static const struct {
    const char *name, *meaning;
} environment[] = {
#define ENVIRONMENT(name, meaning) {name, meaning},
#include "api/ctl/environment.def"
};

/* ---- text in columns ---- */

/* "  left   right", the right column at `width`. */
static void add_row(struct buf *out, const char *left, size_t width, const char *right)
{
    const size_t len = strlen(left);

    (void)buf_appendf(out, "  %s%*s", left, len < width ? (int)(width - len) : 1, "");
    print_wrapped(out, right, 2 + (len < width ? width : len + 1), 2 + width, COLUMNS);
}

static void add_examples(struct buf *out, const char *examples)
{
    struct span list = span_of(examples), line;

    (void)buf_append_str(out, "\nExamples:\n");
    while (span_next_word(&list, '\n', &line)) {
        (void)buf_appendf(out, "  %.*s\n", (int)line.len, line.ptr);
    }
}

/* ---- parts ---- */

static void name_option(const struct option_row *option, char out[LEFT_ROOM])
{
    char letter[8] = "    ";

    if (option->letter) {
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    }
    /* A list of choices is long: it stands behind the explanation. */
    snprintf(out, LEFT_ROOM, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
             !option->argument                     ? ""
             : option->type == OPTION_TYPE_CHOICE  ? "WHICH"
             : option->type == OPTION_TYPE_CHOICES ? "LIST"
                                                   : option->argument);
}

static void add_option(struct buf *out, const struct option_row *option)
{
    char left[LEFT_ROOM];
    struct buf right;

    name_option(option, left);
    buf_init(&right, HELP_MAX);
    (void)buf_append_str(&right, option->help);
    if (option->type == OPTION_TYPE_CHOICE || option->type == OPTION_TYPE_CHOICES) {
        struct span list = span_of(option->argument), word;

        (void)buf_append_str(&right, ":");
        while (span_next_word(&list, '|', &word)) {
            (void)buf_appendf(&right, " %.*s%s", (int)word.len, word.ptr, list.len > 0 ? "," : "");
        }
    }
    add_row(out, left, 24, right.bytes ? right.bytes : "");
    buf_done(&right);
}

/* Those of `command` alone, or the general ones (NULL). */
static void add_options(struct buf *out, const struct command *command, const char *title)
{
    bool is_titled = false;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *option = option_get((enum option_id)i);
        const bool is_wanted =
            command ? !option_is_general(option) && command_takes_option(command, option)
                    : option_is_general(option);

        if (is_wanted) {
            (void)buf_appendf(out, "%s", is_titled ? "" : title);
            is_titled = true;
            add_option(out, option);
        }
    }
}

/* ---- pages ---- */

void help_overview(struct buf *out)
{
    (void)buf_append_str(out, "outboxctl looks into a running outboxd and operates it.\n\n"
                              "Usage: outboxctl [OPTIONS] COMMAND [ARGUMENTS]\n\nExamples:\n");
    (void)buf_append_str(out, overview_examples);
    for (size_t group = 0; group < COMMAND_GROUP_COUNT; group++) {
        (void)buf_appendf(out, "\n%s:\n", command_group_title((enum command_group)group));
        for (size_t i = 0; i < COMMAND_COUNT; i++) {
            const struct command *command = command_get((enum command_id)i);

            if (command->group == (enum command_group)group) {
                add_row(out, command->name, 12, command->summary);
            }
        }
    }
    add_options(out, NULL, "\nOptions:\n");
    (void)buf_append_str(out, "\nEnvironment:\n");
    for (size_t i = 0; i < sizeof(environment) / sizeof(environment[0]); i++) {
        add_row(out, environment[i].name, 24, environment[i].meaning);
    }
    (void)buf_append_str(out, "\nExit codes:\n");
    for (size_t i = 0; i < sizeof(exit_codes) / sizeof(exit_codes[0]); i++) {
        char number[16];

        snprintf(number, sizeof(number), "%d", exit_codes[i].number);
        add_row(out, number, 4, exit_codes[i].meaning);
    }
    (void)buf_append_str(out, "\n`outboxctl COMMAND --help` tells all of a command.\n");
}

void help_command(const struct command *command, struct buf *out)
{
    (void)buf_appendf(out, "outboxctl %s: ", command->name);
    print_wrapped(out, command->summary, strlen("outboxctl ") + strlen(command->name) + 2, 2,
                  COLUMNS);
    (void)buf_appendf(out, "\nUsage: outboxctl %s%s%s\n", command->name,
                      command->arguments[0] ? " " : "", command->arguments);
    if (command->alias) {
        (void)buf_appendf(out, "Also called: %s\n", command->alias);
    }
    if (command->about[0]) {
        (void)buf_append_str(out, "\n");
        print_wrapped(out, command->about, 0, 0, COLUMNS);
    }
    add_options(out, command, "\nOptions:\n");
    add_options(out, NULL, "\nGeneral options:\n");
    add_examples(out, command->examples);
}

void help_print(const struct command *command, bool is_manual)
{
    struct buf out;

    buf_init(&out, HELP_MAX);
    if (is_manual) {
        help_manual(&out);
    } else if (command) {
        help_command(command, &out);
    } else {
        help_overview(&out);
    }
    if (out.bytes) {
        fwrite(out.bytes, 1, out.len, stdout);
    }
    buf_done(&out);
}

void help_print_short(void)
{
    fprintf(stderr,
            "Usage: outboxctl [OPTIONS] COMMAND [ARGUMENTS]\n\nExamples:\n%s"
            "\nSee outboxctl --help.\n",
            overview_examples);
}
