/* The embedded server's paths and options. Everything that matters to durability is set, not left
 * to its defaults. */
#include "supervisor/store_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"

int store_paths_make(struct store_paths *ret, const char *state_dir)
{
    if (strlen(state_dir) > STORE_STATE_DIR_MAX) {
        return -ENAMETOOLONG;
    }
    /* All fit: state_dir is short. */
    (void)snprintf(ret->folder, sizeof(ret->folder), "%s/store", state_dir);
    (void)snprintf(ret->log, sizeof(ret->log), "%s/store/valkey.log", state_dir);
    (void)snprintf(ret->lock, sizeof(ret->lock), "%s/store.lock", state_dir);
    (void)snprintf(ret->socket, sizeof(ret->socket), "%s" EMBEDDED_SOCKET_NAME, state_dir);
    if (mkdir(ret->folder, 0700) < 0 && errno != EEXIST) {
        return -errno;
    }
    return embedded_url_make(state_dir, ret->url);
}

void store_log_last_line(const struct store_paths *paths, char *ret, size_t cap)
{
    char tail[1024];
    AUTO_CLOSE int fd = open(paths->log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    const off_t from = size > (off_t)sizeof(tail) - 1 ? size - ((off_t)sizeof(tail) - 1) : 0;
    ssize_t len = fd < 0 ? 0 : pread(fd, tail, sizeof(tail) - 1, from);

    while (len > 0 && tail[len - 1] == '\n') {
        len--;
    }
    tail[len > 0 ? len : 0] = '\0';
    const char *newline = strrchr(tail, '\n');
    (void)snprintf(ret, cap, "%s", newline ? newline + 1 : tail); /* cut if it is long */
}

static const char *appendfsync_of(struct durability durability)
{
    switch (durability.level) {
    case DURABILITY_FSYNC:
        return "always";
    case DURABILITY_EVERYSEC:
    case DURABILITY_REPLICAS:
        return "everysec";
    case DURABILITY_MEMORY:
        return "no";
    }
    return "always";
}

void store_command_make(struct store_command *ret, const char *program,
                        const struct store_paths *paths, struct durability durability)
{
    const char *const argv[] = {
        program,
        "--port",
        "0", /* the Unix socket only: nobody but our user gets at it */
        "--unixsocket",
        paths->socket,
        "--unixsocketperm",
        "700",
        "--dir",
        paths->folder,
        "--logfile",
        paths->log,
        "--loglevel",
        "notice",
        "--daemonize",
        "no",
        "--supervised",
        "no",
        "--always-show-logo",
        "no",
        "--appendonly",
        "yes",
        "--appendfsync",
        appendfsync_of(durability),
        "--no-appendfsync-on-rewrite",
        "no", /* a rewrite must not weaken what a 202 is worth */
        "--auto-aof-rewrite-min-size",
        "256mb", /* at 64mb, the default, a busy outbox rewrites every few seconds and halves its
                    pace */
        "--aof-use-rdb-preamble",
        "yes",
        "--aof-load-truncated",
        "yes", /* a torn last command was never acknowledged */
        "--save",
        "",
        "--maxmemory",
        "0",
        "--maxmemory-policy",
        "noeviction",
        "--maxclients",
        "10000",
        "--timeout",
        "0",
        "--enable-debug-command",
        "no",
        "--enable-module-command",
        "no",
        NULL,
    };

    _Static_assert(sizeof(argv) <= sizeof(ret->argv), "STORE_ARGS_MAX");
    /* posix_spawn takes char *const[], but changes nothing. */
    memcpy(ret->argv, argv, sizeof(argv));
}
