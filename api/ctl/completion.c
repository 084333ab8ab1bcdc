/* Reads the line as getopt would, as far as it goes, and finds what the last word may become. */
#include "api/ctl/completion.h"

#include <stdio.h>
#include <string.h>

#include "api/ctl/exit_code.h"

#define WORDS_MAX ((size_t)1 << 20)

/* How far the line has been read. */
struct line {
    const struct command *command;  /* NULL: none yet */
    const struct option_row *wants; /* the option whose value comes next; NULL: none */
    int arguments;                  /* behind the command */
    bool is_behind_dashes;          /* behind "--": no options any more */
};

static bool begins_with(struct span word, const char *prefix)
{
    const size_t len = strlen(prefix);

    return word.len >= len && memcmp(word.ptr, prefix, len) == 0;
}

static void offer(struct completion *completion, struct span word)
{
    if (begins_with(word, completion->prefix)) {
        (void)buf_append(&completion->words, word.ptr, word.len);
        (void)buf_append_str(&completion->words, "\n");
    }
}

/* ---- the words before ---- */

static void note_argument(struct line *line, const char *word, struct completion *completion)
{
    if (!line->command) {
        line->command = command_find(word);
        line->arguments = line->command ? 0 : line->arguments;
        return;
    }
    if (line->arguments == 0) {
        completion->workspace = word;
    }
    line->arguments++;
}

static void note_value(const struct option_row *option, const char *value,
                       struct completion *completion)
{
    if (option->id == OPTION_SERVER) {
        completion->server = value;
    }
}

static void note_option(struct line *line, const char *word, struct completion *completion)
{
    const bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    const char *equals = is_long ? strchr(name, '=') : NULL;
    const size_t len = !is_long ? 1 : equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *option = option_find((struct span){name, len});

    if (!option || !option_takes_value(option)) {
        return;
    }
    if (equals) {
        note_value(option, equals + 1, completion);
    } else if (!is_long && name[1] != '\0') {
        note_value(option, name + 1, completion); /* -sURL */
    } else {
        line->wants = option;
    }
}

static void note_word(struct line *line, const char *word, struct completion *completion)
{
    if (line->wants) {
        note_value(line->wants, word, completion);
        line->wants = NULL;
    } else if (line->is_behind_dashes || word[0] != '-' || word[1] == '\0') {
        note_argument(line, word, completion);
    } else if (strcmp(word, "--") == 0) {
        line->is_behind_dashes = true;
    } else {
        note_option(line, word, completion);
    }
}

/* ---- the word being typed ---- */

/* One of `words`, behind whatever `lead` was typed before it ("--color=", "error,"). */
static void offer_choices(struct completion *completion, struct span lead, const char *words)
{
    struct span list = span_of(words), word;

    while (span_next_word(&list, '|', &word)) {
        struct buf whole;

        buf_init(&whole, WORDS_MAX);
        (void)buf_append(&whole, lead.ptr, lead.len);
        (void)buf_append(&whole, word.ptr, word.len);
        offer(completion, (struct span){whole.bytes, whole.len});
        buf_done(&whole);
    }
}

/* `typed`: the part of the prefix that is the value. */
static void offer_value(struct completion *completion, const struct option_row *option,
                        const char *typed)
{
    const size_t before = (size_t)(typed - completion->prefix);
    const char *comma = strrchr(typed, ',');

    switch (option->type) {
    case OPTION_TYPE_FILE:
        completion->wants_files = true;
        return;
    case OPTION_TYPE_FOLDER:
        completion->wants_folders = true;
        return;
    case OPTION_TYPE_CHOICE:
        offer_choices(completion, (struct span){completion->prefix, before}, option->argument);
        return;
    case OPTION_TYPE_CHOICES:
        offer_choices(completion,
                      (struct span){completion->prefix,
                                    comma ? (size_t)(comma + 1 - completion->prefix) : before},
                      option->argument);
        return;
    case OPTION_TYPE_FLAG:
    case OPTION_TYPE_TEXT:
    case OPTION_TYPE_LIST:
    case OPTION_TYPE_COUNT:
    case OPTION_TYPE_DURATION:
        return;
    case OPTION_TYPE_HELP:
        offer_choices(completion, (struct span){completion->prefix, before}, "man");
        return;
    }
}

static void offer_options(struct completion *completion, const struct line *line)
{
    const char *equals = strchr(completion->prefix, '=');
    char name[64];

    if (equals && strncmp(completion->prefix, "--", 2) == 0) {
        const struct span typed = {completion->prefix + 2,
                                   (size_t)(equals - completion->prefix - 2)};
        const struct option_row *option = option_find(typed);

        if (option) {
            offer_value(completion, option, equals + 1);
        }
        return;
    }
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *option = option_get((enum option_id)i);

        if (line->command ? command_takes_option(line->command, option)
                          : option_is_general(option)) {
            snprintf(name, sizeof(name), "--%s", option->name);
            offer(completion, span_of(name));
        }
    }
}

static void offer_commands(struct completion *completion)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        offer(completion, span_of(command_get((enum command_id)i)->name));
    }
}

static void offer_argument(struct completion *completion, const struct line *line)
{
    struct span what = command_argument(line->command, line->arguments), word;

    while (span_next_word(&what, '|', &word)) {
        if (span_equal(word, span_of("WORKSPACE"))) {
            completion->wants_workspaces = true;
        } else if (span_equal(word, span_of("SESSION"))) {
            completion->wants_sessions = true;
        } else if (span_equal(word, span_of("ID"))) {
            completion->wants_ids = true;
            completion->wants_failed =
                line->command->id == COMMAND_RETRY || line->command->id == COMMAND_DISMISS;
        } else if (span_equal(word, span_of("COMMAND"))) {
            offer_commands(completion);
        } else if (word.ptr[0] >= 'a' && word.ptr[0] <= 'z') {
            offer(completion, word);
        }
    }
}

void completion_find(int count, char *const words[], struct completion *ret)
{
    struct line line = {0};

    *ret = (struct completion){.prefix = count > 1 ? words[count - 1] : ""};
    buf_init(&ret->words, WORDS_MAX);
    for (int i = 1; i + 1 < count; i++) {
        note_word(&line, words[i], ret);
    }
    if (line.wants) {
        offer_value(ret, line.wants, ret->prefix);
    } else if (ret->prefix[0] == '-' && !line.is_behind_dashes) {
        offer_options(ret, &line);
    } else if (line.command) {
        offer_argument(ret, &line);
    } else {
        offer_commands(ret);
    }
}

void completion_done(struct completion *completion)
{
    buf_done(&completion->words);
}

int completion_run(int count, char *const words[])
{
    struct completion completion;

    completion_find(count, words, &completion);
    completion_add_names(&completion);
    puts(completion.wants_files ? "files" : completion.wants_folders ? "folders" : "words");
    if (completion.words.len > 0) {
        fwrite(completion.words.bytes, 1, completion.words.len, stdout);
    }
    completion_done(&completion);
    return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}
