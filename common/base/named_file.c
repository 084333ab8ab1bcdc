/* Finds and reads them. Never shows what stands in them. */
#include "common/base/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"

#define PART 4096

static int refuse(struct named_file_mistake *mistake, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(struct named_file_mistake *mistake, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(mistake->text, sizeof(mistake->text), format, args); /* a long path is cut */
    va_end(args);
    return -EINVAL;
}

static bool is_path(const char *name)
{
    return name[0] == '/' || name[0] == '.';
}

bool named_file_is_credential(const char *name)
{
    return !is_path(name);
}

static const char *credentials_folder(void)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");

    return folder && *folder ? folder : NULL;
}

void named_file_path(const char *name, char *path, size_t cap)
{
    const char *folder = credentials_folder();

    if (is_path(name) || !folder) {
        (void)snprintf(path, cap, "%s", name);
    } else {
        (void)snprintf(path, cap, "%s/%s", folder, name);
    }
}

static int find(const char *name, char path[PATH_MAX], struct named_file_mistake *mistake)
{
    const char *folder = credentials_folder();

    if (!is_path(name) && !folder) {
        return refuse(mistake,
                      "'%.60s' is no path, so a credential of systemd is meant, but "
                      "$CREDENTIALS_DIRECTORY is not set (write /… or ./… for a file)",
                      name);
    }
    if (!is_path(name) && strchr(name, '/')) {
        return refuse(mistake, "'%.60s': a credential's name holds no / (write ./… for a file)",
                      name);
    }
    if (strlen(name) + (folder ? strlen(folder) : 0) + 2 > PATH_MAX) {
        return refuse(mistake, "the file's name is too long");
    }
    named_file_path(name, path, PATH_MAX);
    return 0;
}

void named_file_forget(char *text, size_t len)
{
    if (text) {
        explicit_bzero(text, len);
        free(text);
    }
}

/* Grows by copying: realloc would leave what it moves behind. */
static int grow(char **text, size_t len, size_t cap)
{
    char *larger = malloc(cap);

    if (!larger) {
        return -ENOMEM;
    }
    if (*text) {
        memcpy(larger, *text, len);
        named_file_forget(*text, len);
    }
    *text = larger;
    return 0;
}

/* -EFBIG beyond `max`. */
static int read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
    size_t len = 0, cap = 0;
    char *text = NULL;
    int err = 0;

    for (;;) {
        if (cap - len < PART + 1) {
            cap = cap * 2 + PART + 1;
            err = grow(&text, len, cap);
            if (err < 0) {
                break;
            }
        }
        const ssize_t got = read(fd, text + len, PART);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        err = got < 0 ? -errno : 0;
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        if (len > max) {
            err = -EFBIG;
            break;
        }
    }
    if (err < 0) {
        named_file_forget(text, len);
        return err;
    }
    text[len] = '\0';
    *ret = text;
    *ret_len = len;
    return 0;
}

int named_file_read(const char *name, const char *what, size_t max, char **ret, size_t *ret_len,
                    struct named_file_mistake *ret_mistake)
{
    char path[PATH_MAX];
    int err = find(name, path, ret_mistake);

    if (err < 0) {
        return err;
    }
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    err = fd < 0 ? -errno : read_all(fd, max, ret, ret_len);
    if (err == -EFBIG) {
        return refuse(ret_mistake, "%s is longer than %zu bytes: not %s", path, max, what);
    }
    if (err < 0 && err != -ENOMEM) {
        return refuse(ret_mistake, "cannot read %s: %s", path, strerror(-err));
    }
    return err;
}
