/* Segments by name: how one is called, which of a state directory exist, which of them lives. Names
 * found in /dev/shm are anybody's: only exact ones count. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/inherit.h"
#include "common/core/keys.h"
#include "common/shm/shm_private.h"

#define SHM_DIRECTORY  "/dev/shm"
#define GENERATION_MAX 16 /* hex digits */

static uint64_t hash_state_dir(const char *state_dir)
{
    char resolved[PATH_MAX];

    /* One directory, one hash, however it is written; as written where it can't be resolved. */
    if (realpath(state_dir, resolved)) {
        return fnv1a64(resolved, strlen(resolved));
    }
    return fnv1a64(state_dir, strlen(state_dir));
}

void shm_format_name(const char *state_dir, uint64_t generation, char *name)
{
    (void)snprintf(name, SHM_NAME_MAX, "/outboxd.%016" PRIx64 ".%" PRIx64,
                   hash_state_dir(state_dir), generation); /* 43 bytes at most */
}

/* The generation in a name that starts with `prefix`: 1 to 16 lower-case hex digits as we write
 * them. */
static bool parse_generation(const char *name, const char *prefix, uint64_t *ret)
{
    const size_t prefix_len = strlen(prefix);
    if (strncmp(name, prefix, prefix_len) != 0) {
        return false;
    }
    const char *digits = name + prefix_len;
    const size_t len = strlen(digits);
    if (len < 1 || len > GENERATION_MAX || strspn(digits, "0123456789abcdef") != len ||
        (digits[0] == '0' && len > 1)) {
        return false;
    }
    *ret = strtoull(digits, NULL, 16);
    return true;
}

/* Calls `each` for every segment of the state directory. 0 or -errno. */
typedef void segment_cb(const char *name, uint64_t generation, void *arg);
static int each_segment(const char *state_dir, segment_cb *each, void *arg)
{
    char prefix[SHM_NAME_MAX];
    (void)snprintf(prefix, sizeof(prefix), "outboxd.%016" PRIx64 ".", hash_state_dir(state_dir));

    DIR *dir = opendir(SHM_DIRECTORY);
    if (!dir) {
        return -errno;
    }
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        uint64_t generation;
        if (parse_generation(entry->d_name, prefix, &generation)) {
            char name[SHM_NAME_MAX];
            (void)snprintf(name, sizeof(name), "/%.41s",
                           entry->d_name); /* the longest: 8 + 16 + 1 + 16 */
            each(name, generation, arg);
        }
    }
    closedir(dir);
    return 0;
}

struct newest {
    const char *state_dir;
    struct shm *shm; /* owned; the best so far */
    bool is_held;
    uint64_t created_boot_ms;
    int err; /* why a candidate could not be had */
};

static void consider(const char *name, uint64_t generation, void *arg)
{
    struct newest *newest = arg;

    /* The supervisor's lock decides. Where it can't be asked (not readable, no such file) the
     * segment may still do, after every one that is known to live. */
    const int is_free = inherit_slot_is_free(newest->state_dir, generation, SHM_SLOT_SUPERVISOR);
    if (is_free == 1) {
        return;
    }
    const bool is_held = is_free == 0;
    AUTO_CLOSE int fd = shm_open(name, O_RDONLY, 0);
    if (fd < 0) {
        newest->err = -errno;
        return;
    }
    struct shm *shm = NULL;
    uint64_t created_boot_ms = 0;
    const int err = shm_map(&shm, fd, SHM_NO_SLOT, &created_boot_ms);
    if (err < 0) {
        newest->err = err;
        return;
    }
    const bool is_better =
        !newest->shm || (is_held && !newest->is_held) ||
        (is_held == newest->is_held && created_boot_ms > newest->created_boot_ms);
    if (!is_better) {
        shm_destroy(&shm);
        return;
    }
    shm_destroy(&newest->shm);
    newest->shm = shm;
    newest->is_held = is_held;
    newest->created_boot_ms = created_boot_ms;
}

int shm_attach_readonly(struct shm **ret, const char *state_dir)
{
    struct newest newest = {.state_dir = state_dir, .err = -ENOENT};
    const int err = each_segment(state_dir, consider, &newest);

    if (err < 0) {
        return err;
    }
    if (!newest.shm) {
        return newest.err;
    }
    *ret = newest.shm;
    return 0;
}

struct stale {
    shm_is_dead_cb *is_dead;
    void *arg;
    int count;
};

static void unlink_if_dead(const char *name, uint64_t generation, void *arg)
{
    struct stale *stale = arg;

    /* Another user's segment of the same name stays: unlinking fails, and it is none of ours. */
    if (stale->is_dead(generation, stale->arg) && shm_unlink(name) == 0) {
        stale->count++;
    }
}

int shm_unlink_stale(const char *state_dir, shm_is_dead_cb *is_dead, void *arg)
{
    struct stale stale = {.is_dead = is_dead, .arg = arg};
    const int err = each_segment(state_dir, unlink_if_dead, &stale);

    return err < 0 ? err : stale.count;
}
