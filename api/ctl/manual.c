/* outboxctl(1): the tables as roff with man(7) macros. */
#include <ctype.h>

#include "api/ctl/commands.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/help.h"
#include "build_config.h"
#include "common/core/buf.h"

/* Text in which nothing commands roff: backslashes, dashes that are to stay dashes, quotes that are
 * to stay quotes, and a control character at a line's start. */
static void add_text(struct buf *out, struct span text)
{
    if (text.len > 0 && (text.ptr[0] == '.' || text.ptr[0] == '\'')) {
        (void)buf_append_str(out, "\\&");
    }
    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '\\':
            (void)buf_append_str(out, "\\e");
            break;
        case '-':
            (void)buf_append_str(out, "\\-");
            break;
        case '\'':
            (void)buf_append_str(out, "\\(aq");
            break;
        case '`':
            (void)buf_append_str(out, "\\(ga");
            break;
        case '~':
            (void)buf_append_str(out, "\\(ti");
            break;
        case '^':
            (void)buf_append_str(out, "\\(ha");
            break;
        case '"':
            (void)buf_append_str(out, "\\(dq");
            break;
        default:
            (void)buf_append(out, text.ptr + i, 1);
            break;
        }
    }
}

static void add_line(struct buf *out, const char *text)
{
    add_text(out, span_of(text));
    (void)buf_append_str(out, "\n");
}

/* Paragraphs, with what stands in `backticks` in bold. */
static void add_paragraphs(struct buf *out, const char *text)
{
    struct span list = span_of(text), paragraph;

    for (bool is_first = true; span_next_word(&list, '\n', &paragraph); is_first = false) {
        bool is_bold = false;

        (void)buf_append_str(out, is_first ? "" : ".IP\n");
        while (paragraph.len > 0) {
            const char *tick = memchr(paragraph.ptr, '`', paragraph.len);
            const size_t len = tick ? (size_t)(tick - paragraph.ptr) : paragraph.len;

            add_text(out, (struct span){paragraph.ptr, len});
            if (tick) {
                (void)buf_append_str(out, is_bold ? "\\fR" : "\\fB");
                is_bold = !is_bold;
            }
            paragraph.ptr += len + (tick != NULL);
            paragraph.len -= len + (tick != NULL);
        }
        (void)buf_append_str(out, "\n");
    }
}

static void add_option_name(struct buf *out, const struct option_row *option)
{
    if (option->letter) {
        (void)buf_appendf(out, "\\fB\\-%c\\fR, ", option->letter);
    }
    (void)buf_append_str(out, "\\fB\\-\\-");
    add_text(out, span_of(option->name));
    (void)buf_append_str(out, "\\fR");
    if (option->argument) {
        (void)buf_append_str(out, " \\fI");
        add_text(out, span_of(option->argument));
        (void)buf_append_str(out, "\\fR");
    }
    (void)buf_append_str(out, "\n");
}

static void add_command(struct buf *out, const struct command *command)
{
    (void)buf_append_str(out, ".TP\n\\fB");
    add_text(out, span_of(command->name));
    (void)buf_append_str(out, "\\fR \\fI");
    add_text(out, span_of(command->arguments));
    (void)buf_append_str(out, "\\fR\n");
    /* The summary is a phrase; here it is the paragraph's first sentence. */
    (void)buf_appendf(out, "%c", toupper((unsigned char)command->summary[0]));
    add_text(out, span_of(command->summary + 1));
    (void)buf_append_str(out, ".\n");
    if (command->about[0]) {
        add_paragraphs(out, command->about);
    }
    if (command->alias) {
        (void)buf_appendf(out, "Also called \\fB%s\\fR.\n", command->alias);
    }
    bool has_options = false;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *option = option_get((enum option_id)i);

        if (!option_is_general(option) && command_takes_option(command, option)) {
            (void)buf_append_str(out, has_options ? "" : ".RS\n");
            has_options = true;
            (void)buf_append_str(out, ".TP\n");
            add_option_name(out, option);
            add_paragraphs(out, option->help);
        }
    }
    (void)buf_append_str(out, has_options ? ".RE\n" : "");
}

static void add_commands(struct buf *out)
{
    for (size_t group = 0; group < COMMAND_GROUP_COUNT; group++) {
        (void)buf_appendf(out, ".SS %s\n", command_group_title((enum command_group)group));
        for (size_t i = 0; i < COMMAND_COUNT; i++) {
            const struct command *command = command_get((enum command_id)i);

            if (command->group == (enum command_group)group) {
                add_command(out, command);
            }
        }
    }
}

static void add_general_options(struct buf *out)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *option = option_get((enum option_id)i);

        if (option_is_general(option)) {
            (void)buf_append_str(out, ".TP\n");
            add_option_name(out, option);
            add_paragraphs(out, option->help);
        }
    }
}

static void add_exit_codes(struct buf *out)
{
#define EXIT_CODE(id, number, meaning)                                                             \
    (void)buf_append_str(out, ".TP\n\\fB" #number "\\fR\n");                                       \
    add_line(out, meaning);
#include "api/ctl/exit_code.def"
}

static void add_environment(struct buf *out)
{
#define ENVIRONMENT(name, meaning)                                                                 \
    (void)buf_append_str(out, ".TP\n\\fB" name "\\fR\n");                                          \
    add_line(out, meaning);
#include "api/ctl/environment.def"
}

static void add_examples(struct buf *out)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        struct span list = span_of(command_get((enum command_id)i)->examples), line;

        while (span_next_word(&list, '\n', &line)) {
            add_text(out, line);
            (void)buf_append_str(out, "\n");
        }
    }
}

void help_manual(struct buf *out)
{
    (void)buf_append_str(
        out, ".\\\" Made by outboxctl --help=man.\n"
             ".TH OUTBOXCTL 1 \"\" \"outboxd " OUTBOXD_VERSION "\" \"outboxd\"\n"
             ".SH NAME\noutboxctl \\- looks into a running outboxd and operates it\n"
             ".SH SYNOPSIS\n\\fBoutboxctl\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR "
             "[\\fIARGUMENTS\\fR]\n"
             ".SH DESCRIPTION\n"
             "outboxctl asks the API of outboxd(8), a durable outbox, and shows what it "
             "answers. Entries belong to a session, sessions to a workspace; every command "
             "that is about one names it. Options may stand before or behind the command.\n"
             ".PP\n"
             "With \\fB\\-\\-json\\fR standard output is JSON for scripts, and stays as it is: one "
             "document, "
             "the API's answer as it came (list and workspaces: all pages in one), a line for each "
             "ID given to retry, dismiss and remove, and for each event of tail.\n"
             ".SH COMMANDS\n");
    add_commands(out);
    (void)buf_append_str(out, ".SH OPTIONS\nEvery command takes these.\n");
    add_general_options(out);
    (void)buf_append_str(out, ".SH \"EXIT STATUS\"\n");
    add_exit_codes(out);
    (void)buf_append_str(out, ".SH ENVIRONMENT\n");
    add_environment(out);
    (void)buf_append_str(out, ".SH EXAMPLES\n.nf\n");
    add_examples(out);
    (void)buf_append_str(out, ".fi\n.SH \"SEE ALSO\"\n.BR outboxd (8),\n.BR outboxd.yaml (5)\n");
}
