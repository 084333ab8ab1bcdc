/* Writes the settings into a memfd and seals it. Secrets in it: the descriptor goes to our own
 * programs only. */
#include "supervisor/child_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/core/buf.h"
#include "supervisor/fd.h"

#define CONFIG_MAX (4U * 1024 * 1024)

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int child_config_create(const struct settings *settings)
{
    struct buf text;

    buf_init(&text, CONFIG_MAX);
    int err = settings_print(settings, true, &text);
    if (err < 0) {
        buf_done(&text);
        return err;
    }
    AUTO_CLOSE int fd = memfd_create("outboxd-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    err = fd < 0 ? -errno : write_all(fd, text.bytes, text.len);
    buf_done(&text);
    if (err < 0) {
        return err;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        return -errno;
    }
    return fd_take(&fd);
}

int child_config_reopen(int fd)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits any number */
    const int own = open(path, O_RDONLY | O_CLOEXEC);
    return own < 0 ? -errno : own;
}
