/* Writes them into memory files and seals those. Secrets in them: the descriptors go to our own
 * programs only. */
#include "supervisor/child_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Takes over nothing; the text is wiped by whoever owns it. */
static int sealed(const char *name, const char *text, size_t len)
{
    AUTO_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err = fd < 0 ? -errno : write_all(fd, text, len);

    if (err == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        err = -errno;
    }
    return err < 0 ? err : fd_take(&fd);
}

static int seal_settings(const struct settings *settings)
{
    struct buf text;

    buf_init(&text, CONFIG_MAX);
    int err = settings_print(settings, true, &text);
    err = err < 0 ? err : sealed("outboxd-config", text.bytes, text.len);
    if (text.bytes) {
        explicit_bzero(text.bytes, text.len);
    }
    buf_done(&text);
    return err;
}

static int seal_credentials(const struct credentials *credentials)
{
    char *text = credentials_print(credentials);
    const int fd = text ? sealed("outboxd-credentials", text, strlen(text)) : -ENOMEM;

    if (text) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
    return fd;
}

int child_config_create(const struct settings *settings, const struct credentials *credentials,
                        struct child_config *ret)
{
    struct child_config config = CHILD_CONFIG_NONE;

    config.settings = seal_settings(settings);
    config.credentials = config.settings < 0 ? -1 : seal_credentials(credentials);
    if (config.settings < 0 || config.credentials < 0) {
        const int err = config.settings < 0 ? config.settings : config.credentials;

        child_config_close(&config);
        return err;
    }
    *ret = config;
    return 0;
}

void child_config_close(struct child_config *config)
{
    if (config->settings >= 0) {
        close(config->settings);
    }
    if (config->credentials >= 0) {
        close(config->credentials);
    }
    *config = CHILD_CONFIG_NONE;
}

int child_config_reopen(int fd)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits any number */
    const int own = open(path, O_RDONLY | O_CLOEXEC);
    return own < 0 ? -errno : own;
}
