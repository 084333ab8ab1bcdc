/* Where the programs that the supervisor starts are. */
#ifndef SUPERVISOR_PROGRAMS_H
#define SUPERVISOR_PROGRAMS_H

#include <limits.h>

struct program_path {
    char text[PATH_MAX];
};

/* outboxd-api, outboxd-worker: in $OUTBOXD_LIBEXEC if set (nowhere else then), beside this program,
 * in the build tree beside it, or where `meson install` puts them. `folder` is the program's folder
 * in the build tree ("api"). 0 or -ENOENT. */
int program_find(const char *name, const char *folder, struct program_path *ret);
/* Where the program of this process is to be found again, perhaps as another version: its name as
 * it was called, made absolute, links in it kept (a link may point to the next version one day).
 * Called at the start, before the current folder or the file changes. 0 or -ENOENT. */
int program_find_self(const char *argv0, struct program_path *ret);
/* valkey-server, or redis-server, in $PATH or the usual folders. 0 or -ENOENT. */
int program_find_store(struct program_path *ret);

#endif
