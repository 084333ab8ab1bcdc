/* Locks the file, and makes sure that it is still the one of that name: a removal puts another one
 * in its place. */
#include "api/ctl/token_list.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/access/token_table.h"
#include "common/base/err.h"

static bool fail(const char *path, const char *what)
{
    fprintf(stderr, "outboxctl: cannot %s %s: %s\n", what, path, strerror(errno));
    return false;
}

/* So that outboxd, which is of the folder's group where its package made the folder, may read it.
 * Fails for who is not of that group: then the file is of one's own. */
static void give_to_group_of_folder(int fd, const char *path)
{
    char copy[PATH_MAX];
    struct stat folder;

    (void)snprintf(copy, sizeof(copy), "%s", path);
    if (stat(dirname(copy), &folder) < 0 || fchown(fd, (uid_t)-1, folder.st_gid) < 0) {
        return;
    }
    (void)fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP);
}

static bool is_still_it(int fd, const char *path)
{
    struct stat open_one, named;

    return fstat(fd, &open_one) == 0 && stat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static int open_and_lock(const char *path, enum token_list_use use)
{
    const int flags = use == TOKEN_LIST_READ ? O_RDONLY : O_RDWR | O_APPEND | O_CREAT;

    for (;;) {
        const bool is_new = use == TOKEN_LIST_APPEND && access(path, F_OK) < 0;
        AUTO_CLOSE int fd = open(path, flags | O_CLOEXEC, S_IRUSR | S_IWUSR);

        if (fd < 0 || flock(fd, LOCK_EX) < 0) {
            return -1;
        }
        if (is_new) {
            give_to_group_of_folder(fd, path);
        }
        if (is_still_it(fd, path)) {
            return take_fd(&fd);
        }
    }
}

static bool read_all(struct token_list *list)
{
    char part[4096];
    off_t at = 0;

    for (;;) {
        const ssize_t got = pread(list->fd, part, sizeof(part), at);

        if (got < 0 && errno != EINTR) {
            return fail(list->path, "read");
        }
        if (got == 0) {
            return true;
        }
        if (got > 0 && buf_append(&list->text, part, (size_t)got) < 0) {
            errno = EFBIG;
            return fail(list->path, "read");
        }
        at += got > 0 ? got : 0;
    }
}

bool token_list_open(struct token_list *list, const char *path, enum token_list_use use)
{
    *list = (struct token_list){.path = path, .fd = open_and_lock(path, use)};
    buf_init(&list->text, TOKEN_FILE_MAX);
    if (list->fd < 0) {
        return fail(path, "open");
    }
    if (!read_all(list)) {
        token_list_close(list);
        return false;
    }
    return true;
}

void token_list_close(struct token_list *list)
{
    if (list->fd >= 0) {
        close(list->fd);
        list->fd = -1;
    }
    buf_done(&list->text);
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0;
}

bool token_list_append(struct token_list *list, struct span line)
{
    const bool has_end = list->text.len == 0 || list->text.bytes[list->text.len - 1] == '\n';
    struct buf bytes;

    buf_init(&bytes, line.len + 2);
    (void)buf_append_str(&bytes, has_end ? "" : "\n");
    if (buf_append(&bytes, line.ptr, line.len) < 0) {
        errno = ENOMEM;
        return fail(list->path, "write");
    }
    const bool is_written = write_all(list->fd, bytes.bytes, bytes.len);
    const int why = errno;

    if (!is_written) { /* half a line would be a mistake at the next reload */
        (void)!ftruncate(list->fd, (off_t)list->text.len);
    }
    buf_done(&bytes);
    errno = why;
    return is_written || fail(list->path, "write");
}

static bool write_without(const struct token_list *list, size_t line, int fd)
{
    const char *at = list->text.bytes, *end = at + list->text.len;
    struct buf kept;
    struct stat stat;

    buf_init(&kept, TOKEN_FILE_MAX);
    for (size_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t len = stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);

        if (number != line) {
            (void)buf_append(&kept, at, len);
        }
        at += len;
    }
    const bool is_written =
        !kept.failed && fstat(list->fd, &stat) == 0 && fchown(fd, stat.st_uid, stat.st_gid) == 0 &&
        fchmod(fd, stat.st_mode & 07777) == 0 && write_all(fd, kept.bytes, kept.len);

    buf_done(&kept);
    return is_written;
}

bool token_list_remove(struct token_list *list, size_t line)
{
    AUTO_FREE char *path = NULL;

    if (asprintf(&path, "%s.XXXXXX", list->path) < 0) {
        path = NULL; /* undefined after a failure */
        errno = ENOMEM;
        return fail(list->path, "write beside");
    }
    AUTO_CLOSE int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0) {
        return fail(list->path, "write beside");
    }
    if (!write_without(list, line, fd) || rename(path, list->path) < 0) {
        const int why = errno;

        (void)unlink(path);
        errno = why;
        return fail(list->path, "replace");
    }
    return true;
}
