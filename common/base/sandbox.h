/* What an API or a worker gives up for good before it reads a stranger's first byte: system calls
 * that it never needs (sandbox.def), and that others of its user look into its memory. */
#ifndef COMMON_BASE_SANDBOX_H
#define COMMON_BASE_SANDBOX_H

#include <stdbool.h>

/* Called once, while the process has one thread: later threads have what it leaves them. 0, or
 * -errno: nothing can be refused here (a kernel or a build without seccomp: -ENOSYS); the process
 * can go on as it is. Needs no privilege. */
int sandbox_enter(void);
/* The same, as the setting `sandbox` says, and what came of it in the log. */
void sandbox_enter_told(bool is_wanted);

#endif
