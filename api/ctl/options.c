/* The command line, by getopt_long: options may stand before or behind the command. What the
 * environment says counts where the command line says nothing. */
#include "api/ctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/help.h"
#include "build_config.h"
#include "common/core/units.h"

#define COUNT_MAX   UINT64_C(1000000000)
#define SECONDS_MAX (366.0 * 86400)
#define LONG_ONLY   256 /* getopt's number of an option without a letter */
#define CHOICES_MAX 256
#define LETTERS_MAX (2 * OPTION_COUNT + 1)

/* ---- what the values are ---- */

int options_parse_duration(const char *text, int64_t *ret_ms)
{
    char *end = NULL;
    const double seconds = strtod(text, &end);

    if (end != text && *end == '\0') {
        if (!isfinite(seconds) || seconds < 0 || seconds > SECONDS_MAX) {
            return -EINVAL;
        }
        *ret_ms = (int64_t)(seconds * 1000);
        return 0;
    }
    return units_parse_duration(text, ret_ms) == 0 ? 0 : -EINVAL;
}

static bool parse_count(const char *text, uint64_t *ret)
{
    char *end = NULL;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    *ret = strtoull(text, &end, 10);
    return *end == '\0' && *ret >= 1 && *ret <= COUNT_MAX;
}

static bool are_choices(const char *words, const char *text)
{
    struct span list = span_of(text), one;
    bool is_any = false;

    while (span_next_word(&list, ',', &one)) {
        if (!words_contain(words, one)) {
            return false;
        }
        is_any = true;
    }
    return is_any;
}

/* NULL, or what the value must be. */
static const char *mistake_of(const struct option_row *option, const char *value)
{
    uint64_t count;
    int64_t ms;

    switch (option->type) {
    case OPTION_TYPE_FLAG:
    case OPTION_TYPE_TEXT:
    case OPTION_TYPE_LIST:
        return NULL;
    case OPTION_TYPE_FILE:
    case OPTION_TYPE_FOLDER:
        return value[0] ? NULL : "a path";
    case OPTION_TYPE_CHOICE:
        return words_contain(option->argument, span_of(value)) ? NULL : option->argument;
    case OPTION_TYPE_CHOICES:
        return are_choices(option->argument, value) ? NULL : option->argument;
    case OPTION_TYPE_COUNT:
        return parse_count(value, &count) ? NULL : "a number from 1 to 1000000000";
    case OPTION_TYPE_DURATION:
        return options_parse_duration(value, &ms) == 0 ? NULL : "a duration like 500ms, 3s or 10m";
    case OPTION_TYPE_HELP:
        return value[0] == '\0' || strcmp(value, "man") == 0 ? NULL : "--help or --help=man";
    }
    return NULL;
}

/* ---- reading them ---- */

void options_complain(const struct options *options, const char *format, ...)
{
    const struct command *command = options->command;
    va_list args;

    fputs("outboxctl: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nSee outboxctl %s%s--help.\n", command ? command->name : "",
            command ? " " : "");
}

static const char *from_environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value && value[0] ? value : otherwise;
}

static void make_tables(struct option long_options[OPTION_COUNT + 1], char letters[LETTERS_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_get((enum option_id)i);
        const bool has_value = option_takes_value(row);

        long_options[i] = (struct option){
            .name = row->name,
            .has_arg = has_value                       ? required_argument
                       : row->type == OPTION_TYPE_HELP ? optional_argument
                                                       : no_argument,
            .val = LONG_ONLY + (int)i,
        };
        if (row->letter) {
            letters[len++] = row->letter;
            if (has_value) {
                letters[len++] = ':';
            }
        }
    }
    letters[len] = '\0';
    long_options[OPTION_COUNT] = (struct option){0};
}

/* All options of the command line; false: one that is not known, or lacks its value (getopt has
 * said so). */
static bool read_values(int argc, char **argv, struct options *options)
{
    struct option long_options[OPTION_COUNT + 1];
    char letters[LETTERS_MAX];

    make_tables(long_options, letters);
    for (int got; (got = getopt_long(argc, argv, letters, long_options, NULL)) != -1;) {
        const char letter = (char)got;
        const struct option_row *row = got >= LONG_ONLY
                                           ? option_get((enum option_id)(got - LONG_ONLY))
                                       : got == '?' ? NULL
                                                    : option_find((struct span){&letter, 1});

        if (!row) {
            return false;
        }
        if (row->type == OPTION_TYPE_LIST && options->values[row->id]) {
            /* The second would silently take the first one's place. */
            fprintf(stderr,
                    "outboxctl: --%s stands twice: give it once, its values apart by commas\n",
                    row->name);
            return false;
        }
        options->values[row->id] = optarg ? optarg : "";
    }
    options->arguments = argv + optind;
    options->argument_count = argc - optind;
    return true;
}

static enum options_result answer_help(struct options *options)
{
    const char *how = options->values[OPTION_HELP];

    if (mistake_of(option_get(OPTION_HELP), how)) {
        options_complain(options, "there is --help and --help=man, not --help=%s", how);
        return OPTIONS_USAGE;
    }
    help_print(options->command, strcmp(how, "man") == 0);
    return OPTIONS_DONE;
}

/* "a|b|c" as "a, b, c". */
static void say_list(const char *words, char out[CHOICES_MAX])
{
    struct span list = span_of(words), word;
    int len = 0;

    out[0] = '\0';
    while (span_next_word(&list, '|', &word)) {
        const int room = CHOICES_MAX - len;
        const int more = snprintf(out + len, (size_t)room, "%s%.*s", len > 0 ? ", " : "",
                                  (int)word.len, word.ptr);

        if (more >= room) {
            return;
        }
        len += more;
    }
}

static bool check_values(const struct options *options)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_get((enum option_id)i);
        const char *value = options->values[i];
        const char *mistake = value ? mistake_of(row, value) : NULL;

        if (value && !command_takes_option(options->command, row)) {
            options_complain(options, "%s takes no --%s", options->command->name, row->name);
            return false;
        }
        if (mistake) {
            char list[CHOICES_MAX];

            say_list(mistake, list);
            options_complain(options, "--%s must be %s, not \"%s\"", row->name, list, value);
            return false;
        }
    }
    return true;
}

static bool check_arguments(const struct options *options)
{
    const struct command *command = options->command;
    const int count = options->argument_count - 1;
    int min, max;

    command_arguments(command, &min, &max);
    if (count >= min && count <= max) {
        return true;
    }
    options_complain(options, "%s; usage: outboxctl %s%s%s",
                     count < min ? "an argument is missing" : "too many arguments", command->name,
                     command->arguments[0] ? " " : "", command->arguments);
    return false;
}

static bool find_command(struct options *options)
{
    const char *name = options->argument_count > 0 ? options->arguments[0] : NULL;

    if (!name) {
        help_print_short();
        return false;
    }
    options->command = command_find(name);
    if (options->command) {
        return true;
    }
    const char *meant = command_nearest(name);

    if (meant) {
        options_complain(options, "there is no command \"%s\"; did you mean \"%s\"?", name, meant);
    } else {
        options_complain(options, "there is no command \"%s\"", name);
    }
    return false;
}

struct http_tls options_tls(const char *const *values)
{
    const struct {
        enum option_id id;
        const char *name;
    } rows[] = {{OPTION_CA, "OUTBOXCTL_CA_FILE"},
                {OPTION_CERTIFICATE, "OUTBOXCTL_CERTIFICATE_FILE"},
                {OPTION_KEY, "OUTBOXCTL_KEY_FILE"}};
    const char *files[3];

    for (size_t i = 0; i < 3; i++) {
        const char *given = values ? values[rows[i].id] : NULL;

        files[i] = given ? given : from_environment(rows[i].name, NULL);
    }
    return (struct http_tls){.ca = files[0], .certificate = files[1], .key = files[2]};
}

static void apply_environment(struct options *options)
{
    static char systemd[4096];
    const char *folders = from_environment("STATE_DIRECTORY", OPTIONS_DEFAULT_STATE_DIR);

    /* systemd writes several directories as a list. */
    snprintf(systemd, sizeof(systemd), "%.*s", (int)strcspn(folders, ":"), folders);
    options->state_dir =
        options->values[OPTION_STATE_DIR] ? options->values[OPTION_STATE_DIR] : systemd;
    options->server = options->values[OPTION_SERVER]
                          ? options->values[OPTION_SERVER]
                          : from_environment("OUTBOXCTL_SERVER", OPTIONS_DEFAULT_SERVER);
    options->token_file = from_environment("OUTBOXCTL_TOKEN_FILE", NULL);
    options->tls = options_tls(options->values);
}

enum options_result options_read(int argc, char **argv, struct options *ret)
{
    struct options *options = ret;

    *options = (struct options){0};
    if (!read_values(argc, argv, options)) {
        fputs("See outboxctl --help.\n", stderr);
        return OPTIONS_USAGE;
    }
    apply_environment(options);
    if (option_is_set(options, OPTION_HELP)) {
        options->command = options->argument_count > 0 ? command_find(options->arguments[0]) : NULL;
        return answer_help(options);
    }
    if (option_is_set(options, OPTION_VERSION)) {
        puts("outboxctl " OUTBOXD_VERSION);
        return OPTIONS_DONE;
    }
    return find_command(options) && check_values(options) && check_arguments(options)
               ? OPTIONS_RUN
               : OPTIONS_USAGE;
}

/* ---- asking for them ---- */

const char *options_argument(const struct options *options, int index)
{
    return index + 1 < options->argument_count ? options->arguments[index + 1] : NULL;
}

bool option_is_set(const struct options *options, enum option_id id)
{
    return options->values[id] != NULL;
}

const char *option_text(const struct options *options, enum option_id id)
{
    return options->values[id];
}

uint64_t option_count(const struct options *options, enum option_id id, uint64_t otherwise)
{
    uint64_t count = otherwise;

    return options->values[id] && parse_count(options->values[id], &count) ? count : otherwise;
}

int64_t option_ms(const struct options *options, enum option_id id, int64_t otherwise)
{
    int64_t ms = otherwise;

    return options->values[id] && options_parse_duration(options->values[id], &ms) == 0 ? ms
                                                                                        : otherwise;
}
