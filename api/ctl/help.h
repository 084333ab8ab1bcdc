/* outboxctl's help, made from the tables of commands.h: an overview, a page for each command, the
 * manual page. Pure but for the two that print. */
#ifndef API_CTL_HELP_H
#define API_CTL_HELP_H

#include <stdbool.h>

struct buf;
struct command;

void help_overview(struct buf *out);
void help_command(const struct command *command, struct buf *out);
/* outboxctl(1), for man: roff with man(7) macros (manual.c). */
void help_manual(struct buf *out);

/* To stdout; `command` NULL: the overview. */
void help_print(const struct command *command, bool is_manual);
/* To stderr, for who gave no command: what to type. */
void help_print_short(void);

#endif
