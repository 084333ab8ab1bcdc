/* Fork and exec with a table of descriptors: posix_spawn can't change users. Between the two there
 * are system calls only, and every signal is blocked: no handler of ours ever runs in the child.
 * Runs on the loop thread; blocks for the exec only. */
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "supervisor/privileges.h"

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

/* ---- in the child ---- */

/* Default actions, also of what was ignored here. SIGPIPE stays ignored: none of our programs wants
 * to die of a peer that closed, and a library may write before main has said so. */
static void reset_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};

    for (int number = 1; number < NSIG; number++) {
        if (number != SIGPIPE) {
            (void)sigaction(number, &standard, NULL); /* those that can't be changed are default */
        }
    }
}

static int set_standard_streams(void)
{
    const int fd = open("/dev/null", O_RDONLY);

    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return -errno;
    }
    if (fd > STDERR_FILENO) {
        close(fd);
    }
    return 0;
}

static int take_descriptors(const struct spawn_table *table, const int *copies)
{
    for (size_t i = 0; i < table->count; i++) {
        if (dup2(copies[i], table->fds[i].target) < 0) {
            return -errno;
        }
    }
    return 0;
}

/* What it is to be executed with. */
struct program {
    const char *path;
    char *const *argv;
    char *const *environment;
    const struct spawn_table *table;
    const int *copies; /* of the table's sources, above all targets */
    const struct privileges *privileges;
};

/* Returns only if it failed: -errno. */
static int become(const struct program *program)
{
    sigset_t none;

    reset_signals();
    int err = setpgid(0, 0) < 0 ? -errno : 0;
    err = err == 0 ? set_standard_streams() : err;
    err = err == 0 ? take_descriptors(program->table, program->copies) : err;
    if (err == 0 && program->privileges) {
        err = privileges_take(program->privileges);
    }
    if (err < 0) {
        return err;
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* can't fail */
    (void)execve(program->path, program->argv, program->environment);
    return -errno;
}

/* ---- here ---- */

/* Copies every source above all targets, so that no dup2 in the child overwrites another's. */
static int copy_sources(const struct spawn_table *table, int copies[SPAWN_FDS_MAX])
{
    for (size_t i = 0; i < table->count; i++) {
        copies[i] = fcntl(table->fds[i].source, F_DUPFD_CLOEXEC, SPAWN_FD_BASE);
        if (copies[i] < 0) {
            return -errno;
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

/* What the child says through a pipe that its exec closes: nothing, or why it failed. */
static int hear(int fd)
{
    int err = 0;
    ssize_t len;

    do {
        len = read(fd, &err, sizeof(err));
    } while (len < 0 && errno == EINTR);
    return len == (ssize_t)sizeof(err) ? err : 0;
}

static int fork_program(const struct program *program, pid_t *ret_pid)
{
    sigset_t all, before;
    int said[2];

    if (pipe2(said, O_CLOEXEC) < 0) {
        return -errno;
    }
    AUTO_CLOSE int hears = said[0];
    AUTO_CLOSE int says = fcntl(said[1], F_DUPFD_CLOEXEC, SPAWN_FD_BASE); /* above all targets */
    close(said[1]);
    if (says < 0) {
        return -errno;
    }
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before); /* can't fail */
    const pid_t pid = fork();
    if (pid == 0) {
        const int err = become(program);

        (void)!write(says, &err, sizeof(err)); /* nobody else to tell */
        _exit(127);
    }
    int err = pid < 0 ? -errno : 0;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (err < 0) {
        return err;
    }
    close(take_fd(&says)); /* only the child has it now */
    err = hear(hears);
    if (err < 0) {
        (void)waitpid(pid, NULL, 0); /* ends at once; never was one of our children */
        return err;
    }
    *ret_pid = pid;
    return 0;
}

int spawn_process(const char *path, char *const argv[], const struct spawn_table *table,
                  const struct privileges *privileges, pid_t *ret_pid)
{
    char *environment[ENV_MAX + 1];
    int copies[SPAWN_FDS_MAX];
    const struct program program = {
        .path = path,
        .argv = argv,
        .environment = environment,
        .table = table,
        .copies = copies,
        .privileges = privileges,
    };

    for (size_t i = 0; i < SPAWN_FDS_MAX; i++) {
        copies[i] = -1;
    }
    clean_environment(environment);
    int err = copy_sources(table, copies);
    err = err == 0 ? fork_program(&program, ret_pid) : err;
    close_copies(copies, table->count);
    return err;
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
