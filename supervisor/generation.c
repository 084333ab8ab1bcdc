/* The state directory and its lock files. Blocks for file system calls; runs before the loop, and
 * for the lock files every few seconds within it. */
#include "supervisor/generation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/inherit.h"
#include "common/base/log.h"
#include "common/core/ids.h"
#include "common/shm/shm.h"
#include "supervisor/fd.h"
#include "supervisor/privileges.h"
#include "supervisor/upgrade_state.h"

#define LOCK_TRIES                                                                                 \
    40 /* a spawn under way when its supervisor was killed holds the lock for a moment */
#define LOCK_TRY_WAIT_NS 10000000

void generation_init(struct generation *generation)
{
    *generation = (struct generation){.supervisor_lock = -1, .slot_lock = -1};
}

uint64_t generation_random(void)
{
    uint64_t number = 0;

    while (number == 0) {
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
            number = 0; /* interrupted */
        }
    }
    return number;
}

static int refuse_state_dir(const char *what, const char *path, int err)
{
    log_error(what, "state_dir", path, "error", strerror(-err), "mend",
              "set `state_dir` in the configuration to a folder that this user may write");
    return err;
}

static int make_state_dir(struct generation *generation, const char *path)
{
    if (mkdir(path, 0750) < 0 && errno != EEXIST) {
        return refuse_state_dir("cannot make the state directory", path, -errno);
    }
    generation->state_dir = realpath(path, NULL);
    if (!generation->state_dir) {
        return refuse_state_dir("cannot use the state directory", path, -errno);
    }
    if (access(generation->state_dir, R_OK | W_OK | X_OK) < 0) {
        return refuse_state_dir("cannot write to the state directory", path, -errno);
    }
    return 0;
}

/* Whose number stands in the lock file; "unknown" if none does. */
static void read_holder(int fd, char *ret, size_t cap)
{
    const ssize_t len = pread(fd, ret, cap - 1, 0);

    ret[len > 0 ? len : 0] = '\0';
    ret[strspn(ret, "0123456789")] = '\0';
    if (!*ret) {
        (void)snprintf(ret, cap, "unknown"); /* cap is ours */
    }
}

static int flock_soon(int fd)
{
    const struct timespec wait = {.tv_nsec = LOCK_TRY_WAIT_NS};

    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return 0;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return -errno;
        }
        (void)nanosleep(&wait, NULL); /* a signal only makes it shorter */
    }
    return -EWOULDBLOCK;
}

static int take_supervisor_lock(struct generation *generation)
{
    char path[PATH_MAX], holder[24];
    const int len = snprintf(path, sizeof(path), "%s/supervisor.lock", generation->state_dir);

    if (len < 0 || (size_t)len >= sizeof(path)) {
        return refuse_state_dir("the path is too long", generation->state_dir, -ENAMETOOLONG);
    }
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0) {
        return refuse_state_dir("cannot open supervisor.lock", generation->state_dir, -errno);
    }
    const int err = flock_soon(fd);
    if (err == -EWOULDBLOCK) {
        read_holder(fd, holder, sizeof(holder));
        log_error("another outboxd runs on this state directory", "state_dir",
                  generation->state_dir, "held_by_pid", holder, "mend",
                  "stop it, or give this one a `state_dir` of its own");
        return err;
    }
    if (err < 0) {
        return refuse_state_dir("cannot lock supervisor.lock", generation->state_dir, err);
    }
    if (ftruncate(fd, 0) < 0 || dprintf(fd, "%ld\n", (long)getpid()) < 0) {
        return refuse_state_dir("cannot write supervisor.lock", generation->state_dir, -errno);
    }
    generation->supervisor_lock = fd_take(&fd);
    return 0;
}

/* The setting, or the host name with everything that a token can't hold replaced. */
static void choose_node(struct generation *generation, const struct settings *settings)
{
    char host[65] = "";

    if (settings->node && *settings->node) {
        (void)snprintf(generation->node, sizeof(generation->node), "%s",
                       settings->node); /* checked: at most 64 */
        return;
    }
    (void)gethostname(host, sizeof(host) - 1); /* empty if it fails */
    for (char *p = host; *p; p++) {
        const char one[2] = {*p, '\0'};

        if (!node_name_is_valid(one)) {
            *p = '-';
        }
    }
    (void)snprintf(generation->node, sizeof(generation->node), "%s", *host ? host : "localhost");
}

static bool lock_file_path(const struct generation *generation, uint64_t number, uint32_t slot,
                           char *path, size_t cap)
{
    const int len =
        snprintf(path, cap, "%s/locks/%" PRIx64 ".%" PRIu32, generation->state_dir, number, slot);

    return len > 0 && (size_t)len < cap;
}

/* Our own lock file goes: no token names slot 0. */
static void give_number_back(struct generation *generation)
{
    char path[PATH_MAX];

    if (generation->slot_lock < 0) {
        return;
    }
    if (lock_file_path(generation, generation->number, SHM_SLOT_SUPERVISOR, path, sizeof(path))) {
        (void)unlink(path); /* found free, and removed, by the next supervisor else */
    }
    close(generation->slot_lock);
    generation->slot_lock = -1;
}

static int take_number(struct generation *generation)
{
    const uint64_t number = generation_random();
    const int fd = inherit_lock_slot(generation->state_dir, number, SHM_SLOT_SUPERVISOR);

    if (fd < 0) {
        return refuse_state_dir("cannot take a lock file in the state directory",
                                generation->state_dir, fd);
    }
    generation->number = number;
    generation->slot_lock = fd;
    return 0;
}

int generation_begin(struct generation *generation, const struct settings *settings,
                     const struct privileges *privileges)
{
    choose_node(generation, settings);
    if (!node_name_is_valid(generation->node)) {
        log_error("bad node name", "node", generation->node, "mend",
                  "set `node`: 1 to 64 of [A-Za-z0-9_-]");
        return -EINVAL;
    }
    int err = make_state_dir(generation, settings->state_dir);
    if (err == 0) {
        err = take_supervisor_lock(generation);
    }
    if (err == 0) {
        privileges_give_fd(privileges, generation->supervisor_lock);
        err = privileges_give_state_dir(privileges, generation->state_dir);
    }
    if (err < 0) {
        return err;
    }
    return take_number(generation);
}

int generation_resume(struct generation *generation, const struct settings *settings,
                      const struct upgrade_state *state)
{
    choose_node(generation, settings);
    generation->state_dir = strdup(settings->state_dir); /* absolute already */
    generation->supervisor_lock = state->supervisor_lock;
    generation->number = state->generation;
    generation->slot_lock = state->slot_lock;
    return generation->state_dir ? 0 : -ENOMEM;
}

int generation_renew(struct generation *generation)
{
    give_number_back(generation);
    return take_number(generation);
}

void generation_remove_lock(const struct generation *generation, uint64_t number, uint32_t slot)
{
    char path[PATH_MAX];

    if (inherit_slot_is_free(generation->state_dir, number, slot) == 1 &&
        lock_file_path(generation, number, slot, path, sizeof(path))) {
        (void)unlink(path); /* stays for the next pass if it can't be removed */
    }
}

void generation_done(struct generation *generation)
{
    give_number_back(generation);
    if (generation->supervisor_lock >= 0) {
        /* Nobody holds it any more; what stands in it is only for people to read. */
        if (ftruncate(generation->supervisor_lock, 0) < 0) {
            log_warn("the lock file still names this process", "error", strerror(errno));
        }
        close(generation->supervisor_lock);
    }
    free(generation->state_dir);
    generation_init(generation);
}

static bool is_dead(uint64_t number, void *arg)
{
    const struct generation *generation = arg;

    /* Absent (-ENOENT): its supervisor left in peace, or its files were cleaned up. */
    return number != generation->number &&
           inherit_slot_is_free(generation->state_dir, number, SHM_SLOT_SUPERVISOR) != 0;
}

void generation_remove_stale_segments(const struct generation *generation)
{
    struct generation copy = *generation;
    const int count = shm_unlink_stale(generation->state_dir, is_dead, &copy);

    if (count > 0) {
        log_info("removed shared memory of dead supervisors", "segments", LOG_I64(count));
    } else if (count < 0) {
        log_warn("cannot look for shared memory of dead supervisors", "error", strerror(-count));
    }
}

/* "3f9a….5" -> its parts. */
static bool parse_lock_name(const char *name, uint64_t *number, uint32_t *slot)
{
    char *end;

    if (strspn(name, "0123456789abcdef") > 16) {
        return false;
    }
    *number = strtoull(name, &end, 16);
    if (end == name || *end != '.' || end[1] < '0' || end[1] > '9') {
        return false;
    }
    const unsigned long parsed = strtoul(end + 1, &end, 10);
    *slot = (uint32_t)parsed;
    return *end == '\0' && parsed < SHM_SLOT_MAX;
}

void generation_each_lock(const struct generation *generation, generation_lock_cb *cb, void *arg)
{
    char path[PATH_MAX];
    const int len = snprintf(path, sizeof(path), "%s/locks", generation->state_dir);

    if (len < 0 || (size_t)len >= sizeof(path)) {
        return;
    }
    DIR *folder = opendir(path);
    if (!folder) {
        return;
    }
    for (const struct dirent *file = readdir(folder); file; file = readdir(folder)) {
        uint64_t number;
        uint32_t slot;

        if (parse_lock_name(file->d_name, &number, &slot) && number != generation->number) {
            cb(number, slot, inherit_slot_is_free(generation->state_dir, number, slot) == 1, arg);
        }
    }
    closedir(folder);
}

static void note_living(uint64_t number, uint32_t slot, bool is_free, void *arg)
{
    bool *lives = arg;

    (void)number;
    (void)slot;
    *lives = *lives || !is_free;
}

bool generation_others_live(const struct generation *generation)
{
    bool lives = false;

    generation_each_lock(generation, note_living, &lives);
    return lives;
}
