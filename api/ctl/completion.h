/* What the shell offers when somebody presses Tab, read off the tables of commands.h: no command
 * and no option can be missing. deploy/completion/outboxctl is the shell's side. */
#ifndef API_CTL_COMPLETION_H
#define API_CTL_COMPLETION_H

#include <stdbool.h>

#include "api/ctl/commands.h"
#include "common/core/buf.h"

/* outboxctl COMPLETION_WORD WORD...: all words of the line up to the one being typed, which comes
 * last and may be empty; the first is outboxctl's name. */
#define COMPLETION_WORD "__complete"

struct completion {
    struct buf words; /* candidates, a line each */
    bool wants_files, wants_folders;
    /* Names that only a server can tell, all to begin with `prefix`. */
    bool wants_workspaces, wants_sessions, wants_ids;
    bool wants_failed; /* of IDs: failed entries only */
    const char *prefix;
    const char *workspace, *server; /* from the line; NULL: not given */
};

/* Pure. completion_done frees. `words` must outlive *ret. */
void completion_find(int count, char *const words[], struct completion *ret);
void completion_done(struct completion *completion);
/* Adds live names, in a second at most; silent where there are none (completion_names.c). */
void completion_add_names(struct completion *completion);

/* Prints "files", "folders" or "words", then a candidate a line. Returns an enum exit_code. */
int completion_run(int count, char *const words[]);

#endif
