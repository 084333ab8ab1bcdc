/* Secrets from files: read once when the configuration is read, so that a missing one is told then
 * and children need no access to them. A password that stands in the file itself wins over the file
 * it names. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/settings_private.h"
#include "common/base/store_password.h"
#include "common/core/utf8.h"

#define PASSWORD_MAX 1024

struct secret {
    char text[PASSWORD_MAX + 1];
};

static void wipe(struct secret *secret)
{
    explicit_bzero(secret, sizeof(*secret));
}

/* A name that is no path is a credential of systemd (LoadCredential=). 0, or -errno with the reason
 * told (-ENOENT: as a warning only). */
static int find_file(struct settings_source *source, size_t line, const char *path,
                     const char *name, char *out, size_t cap)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    int len;

    if (name[0] == '/' || name[0] == '.') {
        len = snprintf(out, cap, "%s", name);
    } else if (source->report->is_look_only) {
        settings_warn(source, line, path,
                      "the credential %s of systemd is not looked at: only the service gets it",
                      settings_show(name, strlen(name)).text);
        return -ENOENT;
    } else if (!folder || !*folder) {
        settings_complain(source, line, path,
                          "%s is no path, so a credential of systemd is meant, but "
                          "$CREDENTIALS_DIRECTORY is not set (write /… or ./… for a file)",
                          settings_show(name, strlen(name)).text);
        return -EINVAL;
    } else if (strchr(name, '/')) {
        settings_complain(source, line, path,
                          "%s: a credential's name holds no / (write ./… for a file)",
                          settings_show(name, strlen(name)).text);
        return -EINVAL;
    } else {
        len = snprintf(out, cap, "%s/%s", folder, name);
    }
    if (len < 0 || (size_t)len >= cap) {
        settings_complain(source, line, path, "the file's name is too long");
        return -ENAMETOOLONG;
    }
    return 0;
}

/* Reads all, at most `cap` bytes; -EFBIG beyond. */
static ssize_t read_all(int fd, char *out, size_t cap)
{
    size_t n = 0;

    while (n < cap) {
        ssize_t got = read(fd, out + n, cap - n);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            return (ssize_t)n;
        }
        n += (size_t)got;
    }
    return -EFBIG;
}

static int read_file(struct settings_source *source, size_t line, const char *path,
                     const char *name, struct secret *ret)
{
    char file[PATH_MAX];

    if (find_file(source, line, path, name, file, sizeof(file)) < 0) {
        return -EINVAL;
    }
    AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -errno : read_all(fd, ret->text, sizeof(ret->text));
    if (n == -EFBIG) {
        settings_complain(source, line, path, "%s is longer than %d bytes: not a password", file,
                          PASSWORD_MAX);
        return -EINVAL;
    }
    if (n < 0) {
        settings_complain(source, line, path, "cannot read %s: %s", file, strerror((int)-n));
        return -EINVAL;
    }
    size_t len = (size_t)n;
    if (len > 0 && ret->text[len - 1] == '\n') { /* an editor's last line end is no part of it */
        len--;
        len -= len > 0 && ret->text[len - 1] == '\r';
    }
    ret->text[len] = '\0';
    if (len == 0 || strlen(ret->text) != len || !utf8_is_valid(ret->text, len)) {
        settings_complain(source, line, path, "%s %s", file,
                          len == 0 ? "is empty" : "holds bytes that are no text");
        return -EINVAL;
    }
    return 0;
}

static void read_target_password(struct settings_source *source, struct settings *settings,
                                 size_t line)
{
    struct secret secret;

    if (settings->target_password) {
        settings_warn(source, line, "target.password_file",
                      "not read: target.password is given too");
        return;
    }
    if (read_file(source, line, "target.password_file", settings->target_password_file, &secret) ==
        0) {
        settings->target_password = strdup(secret.text);
        source->err = settings->target_password ? source->err : -ENOMEM;
    }
    wipe(&secret);
}

static void read_store_password(struct settings_source *source, struct settings *settings,
                                size_t line)
{
    struct secret secret;

    if (!settings->store_url) {
        return; /* told by the rules: a password for nothing */
    }
    if (store_password_find(settings->store_url).has_password) {
        settings_warn(source, line, "store.password_file", "not read: store.url holds a password");
        return;
    }
    if (read_file(source, line, "store.password_file", settings->store_password_file, &secret) ==
        0) {
        char *url = store_password_set(settings->store_url, secret.text);

        if (url) {
            free(settings->store_url);
            settings->store_url = url;
        } else {
            source->err = -ENOMEM;
        }
    }
    wipe(&secret);
}

void settings_read_secrets(struct settings_source *source, struct settings *settings,
                           const struct settings_lines *lines)
{
    if (settings->target_password && !settings->target_password_file) {
        settings_warn(
            source, lines->settings[SETTING_target_password], "target.password",
            "stands in the configuration itself: target.password_file keeps it out of it");
    }
    if (settings->target_password_file) {
        read_target_password(source, settings, lines->settings[SETTING_target_password_file]);
    }
    if (settings->store_password_file) {
        read_store_password(source, settings, lines->settings[SETTING_store_password_file]);
    }
}
