/* See upgrade.h. */
#include "supervisor/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "supervisor/fd.h"
#include "supervisor/signals.h"
#include "supervisor/spawn.h"
#include "supervisor/upgrade_state.h"

#define CHECK_LIMIT_MS 30000
#define CHECK_STATE_FD 3 /* in the check's process */

int upgrade_init(struct upgrade *upgrade, const struct upgrade_options *options)
{
    *upgrade = (struct upgrade){.options = *options};
    (void)uv_timer_init(options->loop, &upgrade->timer); /* never fails */
    upgrade->timer.data = upgrade;
    return program_find_self(options->argv0, &upgrade->program);
}

bool upgrade_is_checking(const struct upgrade *upgrade)
{
    return upgrade->check > 0;
}

/* ---- the check ---- */

static void on_late(uv_timer_t *timer)
{
    struct upgrade *upgrade = timer->data;

    upgrade->is_late = true;
    (void)kill(upgrade->check, SIGKILL); /* not reaped yet, so the number is its own */
}

static int set_variable(int fd)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", fd); /* fits */
    return setenv(UPGRADE_STATE_VARIABLE, text, 1) < 0 ? -errno : 0;
}

int upgrade_check(struct upgrade *upgrade, const struct upgrade_state *state)
{
    char check[] = "--check", config[] = "--config";
    char *const argv[] = {
        upgrade->program.text,
        check,
        upgrade->options.config ? config : NULL,
        (char *)(uintptr_t)upgrade->options.config, /* posix_spawn changes nothing */
        NULL,
    };
    struct spawn_table table = {0};
    AUTO_CLOSE int fd = upgrade_state_write(state);
    int err = fd < 0 ? fd : spawn_table_add(&table, fd, CHECK_STATE_FD);

    err = err == 0 ? set_variable(CHECK_STATE_FD) : err;
    if (err == 0) {
        err = spawn_process(upgrade->program.text, argv, &table, NULL, &upgrade->check);
    }
    unsetenv(UPGRADE_STATE_VARIABLE);
    if (err < 0) {
        upgrade->check = 0;
        return err;
    }
    upgrade->is_late = false;
    uv_timer_start(&upgrade->timer, on_late, CHECK_LIMIT_MS, 0); /* can't fail: has a callback */
    return 0;
}

bool upgrade_reaped(struct upgrade *upgrade, pid_t pid, int wait_status)
{
    char why[64];

    if (pid != upgrade->check) {
        return false;
    }
    upgrade->check = 0;
    uv_timer_stop(&upgrade->timer);
    if (upgrade->is_late) {
        (void)snprintf(why, sizeof(why), "no answer within %d s", CHECK_LIMIT_MS / 1000);
    } else if (WIFSIGNALED(wait_status)) {
        (void)snprintf(why, sizeof(why), "killed by signal %d", WTERMSIG(wait_status));
    } else {
        (void)snprintf(why, sizeof(why), "exit %d (its reasons stand above)",
                       WEXITSTATUS(wait_status));
    }
    upgrade->options.checked(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0, why,
                             upgrade->options.arg);
    return true;
}

void upgrade_stop(struct upgrade *upgrade)
{
    if (upgrade->check > 0) {
        (void)kill(upgrade->check, SIGKILL);
        upgrade->check = 0; /* reaped as nobody's */
        uv_timer_stop(&upgrade->timer);
    }
}

void upgrade_close(struct upgrade *upgrade)
{
    uv_close((uv_handle_t *)&upgrade->timer, NULL);
}

/* ---- the execution ---- */

static int keep_open(int fd, void *arg)
{
    (void)arg;
    return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
}

static int keep_closed(int fd, void *arg)
{
    (void)arg;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* it was so before */
    return 0;
}

/* Libraries may have opened descriptors without CLOEXEC: none but those of the state go on. */
static int pass_on(const struct upgrade_state *state, int state_fd)
{
    spawn_protect();
    const int err = upgrade_state_each_fd(state, keep_open, NULL);

    return err < 0 ? err : keep_open(state_fd, NULL);
}

int upgrade_execute(struct upgrade *upgrade, const struct upgrade_state *state)
{
    AUTO_CLOSE int fd = upgrade_state_write(state);
    int err = fd < 0 ? fd : pass_on(state, fd);

    err = err == 0 ? set_variable(fd) : err;
    if (err == 0) {
        /* Signals of the moment in between wait for the program that comes. */
        signals_block(true);
        (void)execv(upgrade->program.text, upgrade->options.argv);
        err = -errno;
        signals_block(false);
    }
    unsetenv(UPGRADE_STATE_VARIABLE);
    (void)upgrade_state_each_fd(state, keep_closed, NULL);
    return err;
}
