/* Starting a program with exactly the descriptors that its table names, a clean environment,
 * default signals, a process group of its own (a terminal's ^C reaches the supervisor only), and
 * no more privileges than it needs. */
#ifndef SUPERVISOR_SPAWN_H
#define SUPERVISOR_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#define SPAWN_FDS_MAX 128

struct privileges;

struct spawn_fd {
    int source; /* ours, stays open */
    int target; /* its number in the child: 3 and up; any order, may overlap with sources */
};

struct spawn_table {
    struct spawn_fd fds[SPAWN_FDS_MAX];
    size_t count;
};
/* Adds a descriptor; -1 as a source is left out. More than SPAWN_FDS_MAX: -ENOSPC. */
int spawn_table_add(struct spawn_table *table, int source, int target);

/* Standard input is /dev/null; standard output and error go where our standard error goes.
 * Everything else that we have open must be CLOEXEC. `privileges`: the child's; NULL: all of ours.
 * Returns 0 and the process ID, or -errno (also of each step in the child, and of the exec). */
int spawn_process(const char *path, char *const argv[], const struct spawn_table *table,
                  const struct privileges *privileges, pid_t *ret_pid);

/* Marks every descriptor that we ourselves inherited, from 3 up, CLOEXEC. Called once, first. */
void spawn_protect(void);

#endif
