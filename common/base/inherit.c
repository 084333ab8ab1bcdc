/* A child's command line, its inherited descriptors and the lock file that says that it lives.
 * Runs at the start of a process, before its loop: may block for a moment. */
#include "common/base/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/core/ids.h"

#define LOCK_TRIES       40
#define LOCK_TRY_WAIT_NS 5000000

static bool parse_number(const char *text, unsigned base, uint64_t max, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;

    if (!*text) {
        return false;
    }
    for (const char *p = text; *p; p++) {
        const char *digit = memchr(digits, *p, base);

        if (!digit || value > (max - (uint64_t)(digit - digits)) / base) {
            return false;
        }
        value = value * base + (uint64_t)(digit - digits);
    }
    *ret = value;
    return true;
}

enum option_id {
    OPTION_SLOT,
    OPTION_GENERATION,
    OPTION_INCARNATION,
    OPTION_NODE,
    OPTION_LISTENERS,
    OPTION_KINDS,
    OPTION_COUNT
};

static const struct option options[] = {
    {"slot", required_argument, NULL, OPTION_SLOT},
    {"generation", required_argument, NULL, OPTION_GENERATION},
    {"incarnation", required_argument, NULL, OPTION_INCARNATION},
    {"node", required_argument, NULL, OPTION_NODE},
    {"listeners", required_argument, NULL, OPTION_LISTENERS},
    {"kinds", required_argument, NULL, OPTION_KINDS},
    {NULL, 0, NULL, 0},
};

static bool take_option(enum option_id id, const char *value, struct inherit_args *args)
{
    uint64_t number = 0;
    bool is_good = false;

    switch (id) {
    case OPTION_SLOT:
        is_good = parse_number(value, 10, UINT32_MAX, &number);
        args->slot = (uint32_t)number;
        return is_good;
    case OPTION_GENERATION:
        return parse_number(value, 16, UINT64_MAX, &args->generation);
    case OPTION_INCARNATION:
        return parse_number(value, 16, UINT64_MAX, &args->incarnation);
    case OPTION_NODE:
        if (!node_name_is_valid(value)) {
            return false;
        }
        memcpy(args->node, value, strlen(value) + 1); /* at most 64 bytes: checked above */
        return true;
    case OPTION_LISTENERS:
        is_good = parse_number(value, 10, INHERIT_LISTEN_MAX, &number);
        args->listener_count = (uint32_t)number;
        return is_good;
    case OPTION_KINDS:
        args->kinds = value;
        return true;
    case OPTION_COUNT:
        break;
    }
    return false;
}

int inherit_parse_args(int argc, char **argv, struct inherit_args *ret)
{
    struct inherit_args args = {0};
    bool seen[OPTION_COUNT] = {false};
    int id;

    optind = 0; /* glibc: start anew, whoever parsed before */
    while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (id < 0 || id >= OPTION_COUNT) {
            return -EINVAL; /* getopt has said why */
        }
        if (!take_option((enum option_id)id, optarg, &args)) {
            (void)fprintf(stderr, "%s: bad value '%s' of --%s\n", argv[0], optarg,
                          options[id].name);
            return -EINVAL;
        }
        seen[id] = true;
    }
    if (optind < argc) {
        (void)fprintf(stderr, "%s: unexpected argument '%s'\n", argv[0], argv[optind]);
        return -EINVAL;
    }
    for (int i = 0; i < OPTION_LISTENERS; i++) { /* those before it are required */
        if (!seen[i]) {
            (void)fprintf(stderr, "%s: --%s is missing (started by outboxd, not by hand)\n",
                          argv[0], options[i].name);
            return -EINVAL;
        }
    }
    *ret = args;
    return 0;
}

void inherit_protect(void)
{
    int last = INHERIT_EVENTFD_FIRST + 1024;

    if (close_range(INHERIT_CONFIG, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0) {
        return;
    }
    for (int fd = INHERIT_CONFIG; fd < last; fd++) { /* a kernel before 5.11 */
        int flags = fcntl(fd, F_GETFD);

        if (flags >= 0) {
            (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC); /* can't fail on an open descriptor */
        }
    }
}

void inherit_ignore_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTTIN, SIGTTOU, SIGUSR2};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)signal(numbers[i], SIG_IGN); /* can't fail: valid signals */
    }
}

/* The lock's name below state_dir; the same spelling as in a lock token. */
static int lock_path(char *path, size_t cap, const char *state_dir, uint64_t generation,
                     uint32_t slot)
{
    int len = snprintf(path, cap, "%s/locks/%" PRIx64 ".%" PRIu32, state_dir, generation, slot);

    return len < 0 || (size_t)len >= cap ? -ENAMETOOLONG : 0;
}

static int make_lock_folder(const char *state_dir)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s/locks", state_dir);

    if (len < 0 || (size_t)len >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    return mkdir(path, 0750) < 0 && errno != EEXIST ? -errno : 0;
}

/* Whether the open file still stands under its name: it may have been cleaned up before it was
 * locked. */
static bool is_still_named(int fd, const char *path)
{
    struct stat open_file, named;

    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

static int try_lock(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

    if (fd < 0) {
        return -errno;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return -errno;
    }
    if (!is_still_named(fd, path)) {
        return -EWOULDBLOCK; /* again, with the file that has the name now */
    }
    return take_fd(&fd);
}

int inherit_lock_slot(const char *state_dir, uint64_t generation, uint32_t slot)
{
    const struct timespec wait = {.tv_nsec = LOCK_TRY_WAIT_NS};
    char path[PATH_MAX];
    int err = lock_path(path, sizeof(path), state_dir, generation, slot);

    if (err == 0) {
        err = make_lock_folder(state_dir);
    }
    if (err < 0) {
        return err;
    }
    /* Somebody may hold the lock for an instant only, to see whether it is free: not at once given
     * up. */
    int fd = try_lock(path);
    for (int i = 1; fd == -EWOULDBLOCK && i < LOCK_TRIES; i++) {
        (void)nanosleep(&wait, NULL); /* a signal only makes the wait shorter */
        fd = try_lock(path);
    }
    return fd;
}

int inherit_slot_is_free(const char *state_dir, uint64_t generation, uint32_t slot)
{
    char path[PATH_MAX];
    int err = lock_path(path, sizeof(path), state_dir, generation, slot);

    if (err < 0) {
        return err;
    }
    /* A shared lock: two who look at the same time don't see each other. Closing gives it back. */
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return -errno;
    }
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        return 1;
    }
    return errno == EWOULDBLOCK ? 0 : -errno;
}
