/* The embedded server's life: lock, start, adopt, watch, start again, stop. Its log goes to
 * STATE_DIR/store/valkey.log rather than through us: a pipe to a supervisor that died would lose
 * the lines of a server that outlives it.
 *
 *   IDLE --lock taken--> RUNNING --dies--> WAITING --delay--> (IDLE)
 *     \--lock held--> SEEKING --INFO told its process--> ADOPTED --dies--> WAITING
 */
#include "supervisor/embedded_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "supervisor/fd.h"
#include "supervisor/privileges.h"
#include "supervisor/programs.h"
#include "supervisor/restart_policy.h"
#include "supervisor/spawn.h"
#include "supervisor/store_command.h"

#define SEEK_MS       200
#define SEEK_TELL_MS  5000
#define STORE_LOCK_FD 3 /* in the server: kept open, never used */

enum state {
    STATE_IDLE,
    STATE_RUNNING,
    STATE_SEEKING,
    STATE_ADOPTED,
    STATE_WAITING, /* for the next start */
    STATE_STOPPED,
};

struct embedded_store {
    struct embedded_store_options options;
    struct program_path program;
    struct store_paths paths;
    enum state state;
    pid_t pid;           /* RUNNING, ADOPTED */
    int pidfd;           /* ADOPTED; -1 otherwise */
    uv_poll_t *pid_poll; /* heap: its close is asynchronous */
    uv_timer_t timer;    /* the state's own: seek, delay, kill */
    struct restart_history history;
    int64_t started_ms, told_ms;
    bool is_stopping, is_restarting;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static void begin(struct embedded_store *store);

static void on_begin_timer(uv_timer_t *timer)
{
    begin(timer->data);
}

static void arm(struct embedded_store *store, uv_timer_cb cb, int64_t ms)
{
    uv_timer_start(&store->timer, cb, (uint64_t)ms,
                   0); /* can't fail: has a callback, isn't closing */
}

/* ---- starting ---- */

/* The lock's descriptor, -EWOULDBLOCK while a server (or its rewriting child) has it, -errno. */
static int take_lock(const struct embedded_store *store)
{
    AUTO_CLOSE int fd = open(store->paths.lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

    if (fd < 0) {
        return -errno;
    }
    privileges_give_fd(store->options.privileges, fd);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return -errno;
    }
    return fd_take(&fd);
}

static int spawn_server(struct embedded_store *store, int lock_fd)
{
    struct store_command command;
    struct spawn_table table = {0};

    store_command_make(&command, store->program.text, &store->paths, store->options.durability);
    const int err = spawn_table_add(&table, lock_fd, STORE_LOCK_FD);
    return err < 0 ? err
                   : spawn_process(store->program.text, command.argv, &table,
                                   store->options.privileges, &store->pid);
}

static void wait_for_next_start(struct embedded_store *store)
{
    restart_note_death(&store->history, clock_mono_ms() - store->started_ms);
    const int64_t delay_ms = store->is_restarting ? 0 : restart_delay_ms(&store->history);

    store->is_restarting = false;
    store->state = STATE_WAITING;
    arm(store, on_begin_timer, delay_ms);
    log_info("the store is started again", "after_ms", LOG_I64(delay_ms));
}

static void seek(struct embedded_store *store)
{
    const int64_t now_ms = clock_mono_ms();

    if (store->state != STATE_SEEKING) {
        store->state = STATE_SEEKING;
        store->told_ms = now_ms;
        log_info("store.lock is held: adopting the store that runs", "socket", store->paths.socket);
    } else if (now_ms - store->told_ms >= SEEK_TELL_MS) {
        store->told_ms = now_ms;
        log_warn("store.lock is held, but its server does not answer yet", "lock",
                 store->paths.lock);
    }
    arm(store, on_begin_timer, SEEK_MS);
}

static void begin(struct embedded_store *store)
{
    const int lock_fd = take_lock(store);

    if (lock_fd == -EWOULDBLOCK) {
        seek(store);
        return;
    }
    store->started_ms = clock_mono_ms();
    int err = lock_fd;
    if (lock_fd >= 0) {
        err = spawn_server(store, lock_fd);
        close(lock_fd); /* the server has it; ours would keep it locked beyond the server's death */
    }
    if (err < 0) {
        log_error("cannot start the store", "program", store->program.text, "lock",
                  store->paths.lock, "error", strerror(-err));
        wait_for_next_start(store);
        return;
    }
    store->state = STATE_RUNNING;
    uv_timer_stop(&store->timer);
    log_info("store started", "program", store->program.text, "store_pid", LOG_I64(store->pid),
             "socket", store->paths.socket);
}

void embedded_store_start(struct embedded_store *store)
{
    begin(store);
}

/* ---- its end ---- */

static void on_stopped_timer(uv_timer_t *timer)
{
    struct embedded_store *store = timer->data;
    void (*stopped)(void *arg) = store->stopped;

    store->stopped = NULL;
    if (stopped) {
        stopped(store->stopped_arg);
    }
}

static void free_poll(uv_handle_t *handle)
{
    free(handle);
}

static void drop_pidfd(struct embedded_store *store)
{
    if (store->pid_poll) {
        uv_close((uv_handle_t *)store->pid_poll, free_poll);
        store->pid_poll = NULL;
    }
    if (store->pidfd >= 0) {
        close(store->pidfd);
        store->pidfd = -1;
    }
}

static void ended(struct embedded_store *store, bool by_signal)
{
    drop_pidfd(store);
    store->pid = 0;
    if (store->is_stopping) {
        store->state = STATE_STOPPED;
        log_info("store stopped");
        arm(store, on_stopped_timer, 0);
        return;
    }
    if (!store->is_restarting) {
        char line[256];

        store_log_last_line(&store->paths, line, sizeof(line));
        log_error("the store died", "by", by_signal ? "signal" : "exit", "last_log_line", line);
        store->options.died(by_signal, store->options.arg);
    }
    wait_for_next_start(store);
}

bool embedded_store_reaped(struct embedded_store *store, pid_t pid, int wait_status)
{
    if (!store || store->state != STATE_RUNNING || pid != store->pid) {
        return false;
    }
    ended(store, death_of(wait_status) == DEATH_SIGNAL);
    return true;
}

/* ---- a server that another supervisor started ---- */

bool embedded_store_wants_process(const struct embedded_store *store)
{
    return store && store->state == STATE_SEEKING && !store->is_stopping;
}

pid_t embedded_store_process(const struct embedded_store *store)
{
    return store && (store->state == STATE_RUNNING || store->state == STATE_ADOPTED) ? store->pid
                                                                                     : 0;
}

bool embedded_store_is_adopted(const struct embedded_store *store)
{
    return store && store->state == STATE_ADOPTED;
}

static void on_pidfd(uv_poll_t *poll, int status, int events)
{
    struct embedded_store *store = poll->data;

    (void)status; /* readable or in error: the process is gone */
    (void)events;
    if (store->pid_poll == poll) {
        ended(store, false);
    }
}

void embedded_store_adopt(struct embedded_store *store, pid_t pid)
{
    if (store->state != STATE_SEEKING || pid <= 0) {
        return;
    }
    const int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        return; /* died meanwhile: the next try finds the lock free */
    }
    /* Still locked now: so the number was the server's when we opened it, not a later process's. */
    const int lock_fd = take_lock(store);
    uv_poll_t *poll = lock_fd == -EWOULDBLOCK ? calloc(1, sizeof(*poll)) : NULL;
    if (lock_fd >= 0) {
        close(lock_fd);
    }
    if (!poll || uv_poll_init(store->options.loop, poll, pidfd) < 0) {
        free(poll);
        close(pidfd);
        return; /* the next round tries again */
    }
    poll->data = store;
    uv_poll_start(poll, UV_READABLE, on_pidfd); /* can't fail on a descriptor that init took */
    uv_timer_stop(&store->timer);
    store->pid_poll = poll;
    store->pidfd = pidfd;
    store->pid = pid;
    store->state = STATE_ADOPTED;
    store->started_ms = clock_mono_ms();
    log_info("store adopted", "store_pid", LOG_I64(pid));
}

/* ---- stopping ---- */

static void send_signal(const struct embedded_store *store, int signal_number)
{
    /* Failure means that it is gone: then its end is on its way to us. */
    if (store->state == STATE_ADOPTED) {
        (void)pidfd_send_signal(store->pidfd, signal_number, NULL, 0);
    } else if (store->state == STATE_RUNNING) {
        (void)kill(store->pid, signal_number);
    }
}

static void on_kill_timer(uv_timer_t *timer)
{
    struct embedded_store *store = timer->data;

    log_warn("the store did not stop in time: killed (what it acknowledged is in its file)",
             "store_pid", LOG_I64(store->pid));
    send_signal(store, SIGKILL);
}

void embedded_store_restart(struct embedded_store *store)
{
    if (store->is_restarting) {
        return; /* under way */
    }
    store->is_restarting = true;
    log_warn("the adopted store has other settings than ours: it is started anew", "store_pid",
             LOG_I64(store->pid));
    send_signal(store, SIGTERM);
}

void embedded_store_stop(struct embedded_store *store, bool leave_running, int64_t limit_ms,
                         void (*stopped)(void *arg), void *arg)
{
    store->stopped = stopped;
    store->stopped_arg = arg;
    if (store->state == STATE_STOPPED) {
        arm(store, on_stopped_timer, 0);
        return;
    }
    store->is_stopping = true;
    if (leave_running || (store->state != STATE_RUNNING && store->state != STATE_ADOPTED)) {
        drop_pidfd(store);
        store->state = STATE_STOPPED;
        arm(store, on_stopped_timer, 0);
        return;
    }
    send_signal(store, SIGTERM);
    arm(store, on_kill_timer, limit_ms);
}

/* ---- making ---- */

static int prepare(struct embedded_store *store)
{
    int err = store_paths_make(&store->paths, store->options.state_dir);

    if (err == -ENAMETOOLONG) {
        log_error("the path of the state directory is too long for the store's Unix socket",
                  "state_dir", store->options.state_dir, "longest", LOG_I64(STORE_STATE_DIR_MAX),
                  "mend", "set `state_dir` to a shorter path");
        return err;
    }
    if (err < 0) {
        log_error("cannot make the store's folder", "path", store->paths.folder, "error",
                  strerror(-err));
        return err;
    }
    err = program_find_store(&store->program);
    if (err < 0) {
        log_error("no valkey-server and no redis-server found", "mend",
                  "install one (apt install valkey-server), or set `store.url`");
    }
    return err;
}

int embedded_store_create(struct embedded_store **ret, const struct embedded_store_options *options)
{
    struct embedded_store *store = calloc(1, sizeof(*store));

    if (!store) {
        return -ENOMEM;
    }
    store->options = *options;
    store->pidfd = -1;
    const int err = prepare(store);
    if (err < 0) {
        free(store);
        return err;
    }
    (void)uv_timer_init(options->loop, &store->timer); /* never fails */
    store->timer.data = store;
    *ret = store;
    return 0;
}

const char *embedded_store_url(const struct embedded_store *store)
{
    return store->paths.url;
}

void embedded_store_close(struct embedded_store *store)
{
    if (store) {
        drop_pidfd(store);
        uv_close((uv_handle_t *)&store->timer, NULL);
    }
}

void embedded_store_destroy(struct embedded_store **store)
{
    free(*store);
    *store = NULL;
}
