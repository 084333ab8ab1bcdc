/* One process of a child: its command line, its table of descriptors, its READY line. */
#ifndef SUPERVISOR_CHILD_PROCESS_H
#define SUPERVISOR_CHILD_PROCESS_H

struct child;

/* Draws an incarnation, starts the role's program, fills pid and the process table. `ready` runs
 * once at most, on the loop, when the process says READY. 0 or -errno. */
int child_process_spawn(struct child *child, void (*ready)(struct child *child));
/* The process is gone, or none of our business any more: closes what we hold of it. */
void child_process_done(struct child *child);
const char *child_process_program(const struct child *child);

#endif
