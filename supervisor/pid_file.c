/* Writes the supervisor's process ID to a file, beside it first, so that a reader never sees half
 * of it. */
#include "supervisor/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"

static int write_beside(const char *path, const char *beside)
{
    AUTO_CLOSE int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0) {
        return -errno;
    }
    if (dprintf(fd, "%ld\n", (long)getpid()) < 0 || rename(beside, path) < 0) {
        return -errno;
    }
    return 0;
}

int pid_file_write(const char *path)
{
    char beside[PATH_MAX];
    int err = 0;

    if (!path || !*path) {
        return 0;
    }
    const int len = snprintf(beside, sizeof(beside), "%s.new", path);
    err = len < 0 || (size_t)len >= sizeof(beside) ? -ENAMETOOLONG : write_beside(path, beside);
    if (err < 0) {
        log_error("cannot write the pid file", "pid_file", path, "error", strerror(-err));
    }
    return err;
}

void pid_file_remove(const char *path)
{
    if (path && *path) {
        (void)unlink(path); /* whoever removed it before us wanted the same */
    }
}
