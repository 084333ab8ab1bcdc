/* posix_spawn with a table of descriptors. Runs on the loop thread; blocks for the exec only. */
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Above all target numbers, so that a copy made there is never overwritten by a later dup2. */
#define SPAWN_FD_BASE 256
#define ENV_MAX       64

/* What a child may know of our environment. Anything else could change what it does without the
 * configuration saying so (proxies, preloads). Names that end in `*` are prefixes. */
static const char *const environment_names[] = {
    "PATH",
    "LANG",
    "LC_*",
    "TZ",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "JOURNAL_STREAM",
    "CREDENTIALS_DIRECTORY",
    "STATE_DIRECTORY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "OUTBOXD_*",
    "ASAN_OPTIONS",
    "LSAN_OPTIONS",
    "UBSAN_OPTIONS",
    "TSAN_OPTIONS",
};

int spawn_table_add(struct spawn_table *table, int source, int target)
{
    if (source < 0) {
        return 0;
    }
    if (table->count >= SPAWN_FDS_MAX || target >= SPAWN_FD_BASE) {
        return -ENOSPC;
    }
    table->fds[table->count++] = (struct spawn_fd){.source = source, .target = target};
    return 0;
}

static bool is_passed_on(const char *variable)
{
    for (size_t i = 0; i < sizeof(environment_names) / sizeof(environment_names[0]); i++) {
        const char *name = environment_names[i];
        const size_t len = strlen(name);

        if (name[len - 1] == '*' ? strncmp(variable, name, len - 1) == 0
                                 : strncmp(variable, name, len) == 0 && variable[len] == '=') {
            return true;
        }
    }
    return false;
}

static void clean_environment(char *ret[ENV_MAX + 1])
{
    size_t count = 0;

    for (char **variable = environ; *variable && count < ENV_MAX; variable++) {
        if (is_passed_on(*variable)) {
            ret[count++] = *variable;
        }
    }
    ret[count] = NULL;
}

/* Own group, no blocked signals, default actions. SIGPIPE stays ignored, as here: none of our
 * programs wants to die of a peer that closed, and a library may write before main has said so. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGPIPE);
    int err = posix_spawnattr_setflags(attributes, flags);
    if (err == 0) {
        err = posix_spawnattr_setpgroup(attributes, 0);
    }
    if (err == 0) {
        err = posix_spawnattr_setsigmask(attributes, &none);
    }
    return err != 0 ? err : posix_spawnattr_setsigdefault(attributes, &all);
}

static int set_standard_streams(posix_spawn_file_actions_t *actions)
{
    int err = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    return err != 0 ? err : posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
}

/* Copies every source above all targets, and lets the child move the copies down. */
static int set_descriptors(posix_spawn_file_actions_t *actions, const struct spawn_table *table,
                           int copies[SPAWN_FDS_MAX])
{
    for (size_t i = 0; i < table->count; i++) {
        copies[i] = fcntl(table->fds[i].source, F_DUPFD_CLOEXEC, SPAWN_FD_BASE);
        if (copies[i] < 0) {
            return errno;
        }
        const int err = posix_spawn_file_actions_adddup2(actions, copies[i], table->fds[i].target);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static void close_copies(const int *copies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (copies[i] >= 0) {
            close(copies[i]);
        }
    }
}

int spawn_process(const char *path, char *const argv[], const struct spawn_table *table,
                  pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *environment[ENV_MAX + 1];
    int copies[SPAWN_FDS_MAX];
    pid_t pid;

    for (size_t i = 0; i < SPAWN_FDS_MAX; i++) {
        copies[i] = -1;
    }
    int err = posix_spawn_file_actions_init(&actions);
    if (err != 0) {
        return -err;
    }
    err = posix_spawnattr_init(&attributes);
    if (err != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return -err;
    }
    err = set_attributes(&attributes);
    if (err == 0) {
        err = set_standard_streams(&actions);
    }
    if (err == 0) {
        err = set_descriptors(&actions, table, copies);
    }
    if (err == 0) {
        clean_environment(environment);
        err = posix_spawn(&pid, path, &actions, &attributes, argv, environment);
    }
    close_copies(copies, table->count);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (err == 0) {
        *ret_pid = pid;
    }
    return -err;
}

void spawn_protect(void)
{
    if (close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0) {
        return;
    }
    for (int fd = 3; fd < 1024; fd++) { /* a kernel before 5.11 */
        const int flags = fcntl(fd, F_GETFD);

        if (flags >= 0) {
            (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC); /* can't fail on an open descriptor */
        }
    }
}
