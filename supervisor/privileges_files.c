/* Files of root that children of another user need: given to it. Blocks for file system calls. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "supervisor/privileges.h"

#define DEPTH_MAX 4 /* of the state directory: store/appendonlydir/file, and one to spare */

/* All that there is in a state directory. One that holds more is none: `state_dir: /` must not give
 * away the system. */
static const char *const own_names[] = {
    "locks", "store", "store.lock", "store.sock", "supervisor.lock",
};

static int give_folder(const struct privileges *to, int fd, unsigned depth);

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* An entry of a folder that only root could write until now: nothing in it is a trap. */
static int give_entry(const struct privileges *to, int folder, const char *name, unsigned depth)
{
    struct stat found;

    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? 0 : -errno; /* a server that still runs may have removed it */
    }
    if (S_ISDIR(found.st_mode)) {
        const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : give_folder(to, fd, depth + 1);
    }
    if (found.st_uid != 0 || S_ISLNK(found.st_mode) || found.st_nlink > 1) {
        return 0;
    }
    return fchownat(folder, name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* What is in it first, itself last: until then nobody else can put something there. Takes
 * ownership of `fd`. */
static int give_folder(const struct privileges *to, int fd, unsigned depth)
{
    DIR *folder = fdopendir(fd);
    int err = 0;

    if (!folder) {
        err = -errno;
        close(fd);
        return err;
    }
    for (const struct dirent *entry = readdir(folder); entry && err == 0; entry = readdir(folder)) {
        if (!is_dots(entry->d_name)) {
            err = depth < DEPTH_MAX ? give_entry(to, fd, entry->d_name, depth) : -ELOOP;
        }
    }
    if (err == 0 && fchown(fd, to->uid, to->gid) < 0) {
        err = -errno;
    }
    closedir(folder);
    return err;
}

static bool is_own_name(const char *name)
{
    for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++) {
        if (strcmp(name, own_names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes ownership of `fd`. */
static bool holds_only_ours(int fd)
{
    DIR *folder = fdopendir(fd);
    bool is_ours = folder;

    if (!folder) {
        close(fd);
        return false;
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        is_ours = is_ours && (is_dots(entry->d_name) || is_own_name(entry->d_name));
    }
    closedir(folder);
    return is_ours;
}

/* From root, whose folder it is. */
static int give_whole(const struct privileges *to, const char *state_dir, mode_t mode)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = open(state_dir, flags);

    if (fd < 0) {
        return -errno;
    }
    if (!holds_only_ours(fd) || (mode & S_IWOTH)) {
        return -ENOTEMPTY;
    }
    fd = open(state_dir, flags);
    return fd < 0 ? -errno : give_folder(to, fd, 0);
}

static int refuse(const char *what, const char *path, int err)
{
    log_error(what, "path", path, "error", strerror(-err), "mend",
              "stop outboxd, chown -R the state directory to that user, start it again (setting "
              "user)");
    return err;
}

/* A folder of theirs in a state directory that is theirs already. */
static int give_part(const struct privileges *to, int state_fd, const char *name, mode_t mode)
{
    struct stat found;

    if (mkdirat(state_fd, name, mode) == 0) { /* ours, and empty */
        return fchownat(state_fd, name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    }
    if (errno != EEXIST || fstatat(state_fd, name, &found, AT_SYMLINK_NOFOLLOW) < 0) {
        return -errno;
    }
    return found.st_uid == to->uid && S_ISDIR(found.st_mode) ? 0 : -EACCES;
}

int privileges_give_state_dir(const struct privileges *privileges, const char *state_dir)
{
    struct stat found;

    if (!privileges->is_other_user) {
        return 0;
    }
    AUTO_CLOSE int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) < 0) {
        return refuse("cannot use the state directory", state_dir, -errno);
    }
    if (found.st_uid != 0 && found.st_uid != privileges->uid) {
        return refuse("the state directory is neither root's nor of the user of the children",
                      state_dir, -EACCES);
    }
    if (found.st_uid == 0) {
        const int err = give_whole(privileges, state_dir, found.st_mode);

        if (err < 0) {
            return refuse("cannot give the state directory to the user of the children", state_dir,
                          err);
        }
        log_info("the state directory was given to the user of the children", "state_dir",
                 state_dir);
    }
    int err = give_part(privileges, fd, "locks", 0750);
    err = err == 0 ? give_part(privileges, fd, "store", 0700) : err;
    return err < 0 ? refuse("locks or store in the state directory is not of the user of the "
                            "children",
                            state_dir, err)
                   : 0;
}

void privileges_give_fd(const struct privileges *privileges, int fd)
{
    struct stat found;

    /* Another name elsewhere: somebody made it one of ours. */
    if (!privileges->is_other_user || fd < 0 || fstat(fd, &found) < 0 || found.st_uid != 0 ||
        found.st_nlink > 1) {
        return;
    }
    if (fchown(fd, privileges->uid, privileges->gid) < 0) {
        log_warn("cannot give a file to the user of the children", "error", strerror(errno));
    }
}

void privileges_give_file(const struct privileges *privileges, const char *path)
{
    AUTO_CLOSE int fd =
        privileges->is_other_user && path ? open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    struct stat found;

    if (fd < 0 || fstat(fd, &found) < 0 || found.st_uid != 0 || found.st_nlink > 1 ||
        !(S_ISREG(found.st_mode) || S_ISSOCK(found.st_mode))) {
        return;
    }
    if (fchownat(fd, "", privileges->uid, privileges->gid, AT_EMPTY_PATH) < 0) {
        log_warn("cannot give a file to the user of the children", "path", path, "error",
                 strerror(errno));
    }
}
