/* The tables of commands and options, and all that is made of them: nothing that they name is
 * missing from the help, the manual page or what completion offers, and no example says what is not
 * so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/ctl/commands.h"
#include "api/ctl/completion.h"
#include "api/ctl/help.h"
#include "common/core/buf.h"

static bool holds_line(const struct buf *lines, const char *line)
{
    struct span list = {lines->bytes, lines->len}, one;

    while (span_next_word(&list, '\n', &one)) {
        if (span_equal(one, span_of(line))) {
            return true;
        }
    }
    return false;
}

/* ---- the tables ---- */

static void no_name_stands_for_two(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = command_get((enum command_id)i);

        assert_ptr_equal(command_find(command->name), command);
        if (command->alias) {
            assert_ptr_equal(command_find(command->alias), command);
        }
    }
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *option = option_get((enum option_id)i);

        assert_ptr_equal(option_find(span_of(option->name)), option);
        if (option->letter) {
            assert_ptr_equal(option_find((struct span){&option->letter, 1}), option);
        }
        assert_int_equal(option->argument != NULL, option_takes_value(option));
        assert_true(option->commands != 0);
    }
    assert_null(command_find("no-such-command"));
    assert_null(option_find(span_of("no-such-option")));
}

static void arguments_are_counted_as_they_are_written(void **state)
{
    static const struct {
        enum command_id id;
        int min, max;
    } rows[] = {
        {COMMAND_STATUS, 0, 0}, {COMMAND_LIST, 1, 2},    {COMMAND_TAIL, 0, 2},
        {COMMAND_SEND, 1, 3},   {COMMAND_CONFIRM, 2, 3}, {COMMAND_RETRY, 2, COMMAND_ARGUMENTS_ANY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int min, max;

        command_arguments(command_get(rows[i].id), &min, &max);
        assert_int_equal(min, rows[i].min);
        assert_int_equal(max, rows[i].max);
    }
}

static void an_argument_is_known_by_its_place(void **state)
{
    static const struct {
        enum command_id id;
        int index;
        const char *word;
    } rows[] = {
        {COMMAND_TAIL, 0, "WORKSPACE"},
        {COMMAND_TAIL, 1, "SESSION"},
        {COMMAND_TAIL, 2, ""},
        {COMMAND_RETRY, 1, "ID"},
        {COMMAND_RETRY, 5, "ID"},
        {COMMAND_CONFIRM, 1, "ID|SESSION"},
        {COMMAND_SWEEP, 1, "unverifiable|parked-errors"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(span_equal(command_argument(command_get(rows[i].id), rows[i].index),
                               span_of(rows[i].word)));
    }
}

static void a_misspelt_command_is_guessed(void **state)
{
    static const struct {
        const char *typed, *meant;
    } rows[] = {
        {"lst", "list"},     {"satus", "status"},   {"sedn", "send"},
        {"retyr", "retry"},  {"dismis", "dismiss"}, {"work", "workspaces"},
        {"event", "events"}, {"xyzzy", NULL},       {"", NULL},
        {"q", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *nearest = command_nearest(rows[i].typed);

        if (rows[i].meant) {
            assert_non_null(nearest);
            assert_string_equal(nearest, rows[i].meant);
        } else {
            assert_null(nearest);
        }
    }
}

/* ---- examples ---- */

/* The words of a command line from `outboxctl` on, to the end of that command. */
static void check_example(struct span line)
{
    const struct command *command = NULL;
    struct span word;

    while (span_next_word(&line, ' ', &word)) {
        const struct span bare = {word.ptr, word.len - (word.ptr[word.len - 1] == ';')};

        if (word.ptr[0] == '|') {
            return;
        }
        if (word.len > 2 && memcmp(word.ptr, "--", 2) == 0) {
            const struct option_row *option =
                option_find((struct span){bare.ptr + 2, bare.len - 2});

            assert_non_null(option);
            assert_true(command ? command_takes_option(command, option)
                                : option_is_general(option));
        } else if (!command) {
            char name[32];

            snprintf(name, sizeof(name), "%.*s", (int)bare.len, bare.ptr);
            command = command_find(name);
        }
    }
    assert_non_null(command);
}

static void examples_use_commands_and_options_that_there_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = command_get((enum command_id)i);
        struct span list = span_of(command->examples), line;

        assert_non_null(strstr(command->examples, command->name));
        while (span_next_word(&list, '\n', &line)) {
            const char *start = memmem(line.ptr, line.len, "outboxctl ", 10);

            assert_non_null(start);
            for (; start;
                 start = memmem(start, (size_t)(line.ptr + line.len - start), "outboxctl ", 10)) {
                start += 10;
                check_example((struct span){start, (size_t)(line.ptr + line.len - start)});
            }
        }
    }
}

/* ---- help ---- */

static void assert_width(const struct buf *text)
{
    struct span list = {text->bytes, text->len}, line;

    while (span_next_word(&list, '\n', &line)) {
        if (line.len > 80 && !memmem(line.ptr, line.len, "outboxctl ", 10)) {
            fail_msg("wider than 80 columns: %.*s", (int)line.len, line.ptr);
        }
    }
}

static void the_overview_names_every_command(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    help_overview(&out);
    assert_width(&out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char line[64];

        snprintf(line, sizeof(line), "\n  %s ", command_get((enum command_id)i)->name);
        assert_non_null(strstr(out.bytes, line));
    }
    buf_done(&out);
}

static void the_help_of_a_command_names_its_options_and_no_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = command_get((enum command_id)i);
        struct buf out;

        buf_init(&out, 1 << 20);
        help_command(command, &out);
        assert_width(&out);
        for (size_t k = 0; k < OPTION_COUNT; k++) {
            const struct option_row *option = option_get((enum option_id)k);
            char line[64];

            snprintf(line, sizeof(line), "%s--%s ", option->letter ? ", " : "      ", option->name);
            assert_int_equal(strstr(out.bytes, line) != NULL,
                             command_takes_option(command, option));
        }
        assert_non_null(strstr(out.bytes, command->examples[0] == 'o' ? "\n  outboxctl " : "\n  "));
        buf_done(&out);
    }
}

static void the_manual_page_names_all(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    help_manual(&out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char line[64];

        snprintf(line, sizeof(line), ".TP\n\\fB%s\\fR", command_get((enum command_id)i)->name);
        assert_non_null(strstr(out.bytes, line));
    }
    /* No line of text begins with what roff takes for a command. */
    for (const char *at = strstr(out.bytes, "\n."); at; at = strstr(at + 1, "\n.")) {
        assert_true((at[2] >= 'A' && at[2] <= 'Z') || strncmp(at + 2, "nf\n", 3) == 0 ||
                    strncmp(at + 2, "fi\n", 3) == 0);
    }
    assert_null(strstr(out.bytes, "\n'"));
    buf_done(&out);
}

/* ---- completion ---- */

static void complete(struct completion *ret, int count, const char *const words[])
{
    char *line[16] = {NULL};

    for (int i = 0; i < count; i++) {
        line[i] = (char *)(uintptr_t)words[i];
    }
    completion_find(count, line, ret);
}

static void completion_offers_every_command_and_option(void **state)
{
    struct completion found;

    (void)state;
    complete(&found, 2, (const char *const[]){"outboxctl", ""});
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        assert_true(holds_line(&found.words, command_get((enum command_id)i)->name));
    }
    completion_done(&found);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = command_get((enum command_id)i);

        complete(&found, 3, (const char *const[]){"outboxctl", command->name, "--"});
        for (size_t k = 0; k < OPTION_COUNT; k++) {
            const struct option_row *option = option_get((enum option_id)k);
            char word[64];

            snprintf(word, sizeof(word), "--%s", option->name);
            assert_int_equal(holds_line(&found.words, word), command_takes_option(command, option));
        }
        completion_done(&found);
    }
}

static void completion_knows_what_stands_where(void **state)
{
    static const struct {
        const char *words[8];
        const char *offered;
    } rows[] = {
        {{"outboxctl", "res"}, "resume\n"},
        {{"outboxctl", "--color", "a"}, "auto\nalways\n"},
        {{"outboxctl", "--color=n"}, "--color=never\n"},
        {{"outboxctl", "list", "w", "--status", "error,pe"}, "error,pending\n"},
        {{"outboxctl", "list", "--status=pa"}, "--status=parked\n"},
        {{"outboxctl", "sweep", "w", ""}, "unverifiable\nparked-errors\n"},
        {{"outboxctl", "target", "--executor", "http", "w", "u", "--ex"}, "--executor\n"},
        {{"outboxctl", "help", "swe"}, "sweep\n"},
        {{"outboxctl", "--help="}, "--help=man\n"},
        {{"outboxctl", "send", "w", "s", "--", "--"}, ""},
        {{"outboxctl", "nonsense", "--pay"}, ""},
        {{"outboxctl"}, NULL},
    };

    (void)state;
    for (size_t i = 0; rows[i].offered; i++) {
        struct completion found;
        int count = 0;

        while (count < 8 && rows[i].words[count]) {
            count++;
        }
        complete(&found, count, rows[i].words);
        assert_string_equal(found.words.bytes ? found.words.bytes : "", rows[i].offered);
        completion_done(&found);
    }
}

static void completion_knows_whose_names_are_wanted(void **state)
{
    struct completion found;

    (void)state;
    complete(&found, 5, (const char *const[]){"outboxctl", "-s", "unix:/a", "list", ""});
    assert_true(found.wants_workspaces && !found.wants_sessions && !found.wants_ids);
    assert_string_equal(found.server, "unix:/a");
    completion_done(&found);
    complete(&found, 4, (const char *const[]){"outboxctl", "tail", "home", "a"});
    assert_true(found.wants_sessions && !found.wants_ids);
    assert_string_equal(found.workspace, "home");
    assert_string_equal(found.prefix, "a");
    completion_done(&found);
    complete(&found, 5, (const char *const[]){"outboxctl", "retry", "home", "ob_1", "ob"});
    assert_true(found.wants_ids && found.wants_failed);
    completion_done(&found);
    complete(&found, 4, (const char *const[]){"outboxctl", "confirm", "home", ""});
    assert_true(found.wants_ids && found.wants_sessions && !found.wants_failed);
    completion_done(&found);
    complete(&found, 4, (const char *const[]){"outboxctl", "send", "--text-file", "x"});
    assert_true(found.wants_files && !found.wants_workspaces);
    completion_done(&found);
    complete(&found, 4, (const char *const[]){"outboxctl", "top", "--state-dir", "x"});
    assert_true(found.wants_folders);
    completion_done(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_name_stands_for_two),
        cmocka_unit_test(arguments_are_counted_as_they_are_written),
        cmocka_unit_test(an_argument_is_known_by_its_place),
        cmocka_unit_test(a_misspelt_command_is_guessed),
        cmocka_unit_test(examples_use_commands_and_options_that_there_are),
        cmocka_unit_test(the_overview_names_every_command),
        cmocka_unit_test(the_help_of_a_command_names_its_options_and_no_others),
        cmocka_unit_test(the_manual_page_names_all),
        cmocka_unit_test(completion_offers_every_command_and_option),
        cmocka_unit_test(completion_knows_what_stands_where),
        cmocka_unit_test(completion_knows_whose_names_are_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
