/* What a run of the supervisor is made of, before the loop runs, and how it is taken apart after
 * it: locks, shared memory, the choice of the store, what children inherit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/store_password.h"
#include "supervisor/child_config.h"
#include "supervisor/pid_file.h"
#include "supervisor/supervisor.h"
#include "supervisor/supervisor_private.h"

#define LOCKS_SHOWN_MAX 512 /* per worker, in `outboxctl top`; 256 bytes each */

int supervisor_make_segment(struct supervisor *supervisor)
{
    const struct shm_sizes sizes = {
        /* Old and new workers side by side during a reload, however many there will be then, and
         * some that are slow to go. */
        .worker_slots = SHM_WORKER_SLOTS_MAX,
        .locks_per_worker = supervisor->settings->max_in_flight < LOCKS_SHOWN_MAX
                                ? supervisor->settings->max_in_flight
                                : LOCKS_SHOWN_MAX,
    };
    const struct generation *generation = &supervisor->generation;

    generation_remove_stale_segments(generation);
    int err = shm_create(&supervisor->shm, generation->state_dir, generation->number, &sizes);
    if (err == 0) {
        privileges_give_fd(&supervisor->privileges, shm_fd(supervisor->shm));
        err = wake_set_create(&supervisor->wakes, shm_slot_count(supervisor->shm));
    }
    if (err < 0) {
        log_error("cannot make the shared memory", "error", strerror(-err), "mend",
                  "make room in /dev/shm, or raise the limit of open files");
        return err;
    }
    shm_process_begin(supervisor->shm, SHM_SLOT_SUPERVISOR, SHM_ROLE_SUPERVISOR, (int32_t)getpid(),
                      0);
    return 0;
}

static void on_store_died(bool by_signal, void *arg)
{
    struct supervisor *supervisor = arg;

    metrics_add_restart(supervisor->metrics, LABEL_ROLE_STORE,
                        by_signal ? LABEL_DEATH_REASON_SIGNAL : LABEL_DEATH_REASON_EXIT, 1);
}

/* The URL for the log: what stands between the user and the @ is nobody's business. */
static char *without_password(const char *url)
{
    const struct store_password found = store_password_find(url);
    char *shown = NULL;

    if (!found.has_password) {
        return strdup(url);
    }
    if (asprintf(&shown, "%.*s***%s", (int)found.password, url,
                 url + found.password + found.password_len) < 0) {
        return NULL;
    }
    return shown;
}

static int choose_store(struct supervisor *supervisor)
{
    struct settings *settings = supervisor->settings;
    const struct embedded_store_options options = {
        .loop = &supervisor->loop,
        .state_dir = supervisor->generation.state_dir,
        .durability = settings->durability,
        .privileges = &supervisor->privileges,
        .died = on_store_died,
        .arg = supervisor,
    };
    const char *reason = NULL;

    const char *configured = supervisor->configured->store_url;

    if (!configured || !*configured) {
        const int err = embedded_store_create(&supervisor->embedded, &options);
        if (err < 0) {
            return err;
        }
        free(settings->store_url);
        settings->store_url = strdup(embedded_store_url(supervisor->embedded));
    }
    supervisor->shown_url = settings->store_url ? without_password(settings->store_url) : NULL;
    if (!supervisor->shown_url) {
        return -ENOMEM;
    }
    if (store_url_check(settings->store_url, &reason) < 0) {
        log_error("bad store.url", "store", supervisor->shown_url, "why", reason);
        supervisor->exit_status = 2;
        return -EINVAL;
    }
    if (supervisor->embedded) {
        embedded_store_start(supervisor->embedded);
    }
    return 0;
}

int supervisor_find_programs(struct program_path *api, struct program_path *worker)
{
    int err = program_find("outboxd-api", "api", api);

    if (err == 0) {
        err = program_find("outboxd-worker", "worker", worker);
    }
    if (err < 0) {
        log_error("outboxd-api or outboxd-worker not found", "mend",
                  "install them, or set OUTBOXD_LIBEXEC to their folder");
    }
    return err;
}

int supervisor_child_config(struct supervisor *supervisor, const struct settings *settings,
                            const struct credentials *credentials, struct child_config *ret)
{
    kind_labels_add(&supervisor->kinds, settings);
    const int err = child_config_create(settings, credentials, ret);
    if (err < 0) {
        log_error("cannot write the children's configuration", "error", strerror(-err));
    }
    return err;
}

/* The children's current folder may be another one day. */
static int make_state_dir_absolute(struct supervisor *supervisor)
{
    char *state_dir = strdup(supervisor->generation.state_dir);

    if (!state_dir) {
        return -ENOMEM;
    }
    free(supervisor->settings->state_dir);
    supervisor->settings->state_dir = state_dir;
    return 0;
}

/* Connections and eventfds of many children: as many descriptors as the system lets us have.
 * Children inherit it. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* what we have may do */
    }
}

static int init_upgrade(struct supervisor *supervisor)
{
    const struct upgrade_options options = {
        .loop = &supervisor->loop,
        .argv0 = supervisor->options->argv[0],
        .argv = supervisor->options->argv,
        .config = supervisor->options->config,
        .checked = supervisor_upgrade_checked,
        .arg = supervisor,
    };

    if (upgrade_init(&supervisor->upgrade, &options) < 0) {
        log_warn("this program's own file was not found: USR2 will not work", "called_as",
                 supervisor->options->argv[0]);
    }
    return 0;
}

int supervisor_find_privileges(struct supervisor *supervisor)
{
    const struct settings *settings = supervisor->settings;
    char why[PRIVILEGES_WHY_MAX];
    const int err =
        privileges_find(settings->user, settings->group, false, &supervisor->privileges, why);

    if (err < 0) {
        log_error("cannot find the user of the children", "why", why, "setting", "user");
    } else {
        privileges_give_file(&supervisor->privileges, settings->log_file);
    }
    return err;
}

static int start_anew(struct supervisor *supervisor)
{
    int err = settings_copy(supervisor->settings, &supervisor->configured);

    err = err == 0 ? supervisor_find_privileges(supervisor) : err;
    if (err == 0 && geteuid() == 0 && !supervisor->privileges.is_other_user) {
        log_warn("API, workers and the embedded store run as root", "mend",
                 "set `user` in the configuration, or start outboxd as a user of its own");
    }
    if (err == 0) {
        err = listeners_take_passed(&supervisor->listeners, supervisor->settings);
    }
    if (err == 0) {
        err = generation_begin(&supervisor->generation, supervisor->settings,
                               &supervisor->privileges);
    }
    if (err == 0) {
        err = supervisor_make_segment(supervisor);
    }
    if (err == 0 && pipe2(supervisor->lifeline, O_CLOEXEC) < 0) {
        err = -errno;
    }
    return err == 0 ? make_state_dir_absolute(supervisor) : err;
}

int supervisor_set_up(struct supervisor *supervisor, const struct upgrade_state *state)
{
    raise_file_limit();
    int err = init_upgrade(supervisor);

    if (err == 0) {
        err = supervisor_find_programs(&supervisor->api, &supervisor->worker);
    }
    if (err == 0) {
        err = state ? supervisor_take_over(supervisor, state) : start_anew(supervisor);
    }
    if (err == 0) {
        supervisor->metrics = metrics_of(supervisor->shm);
        err = pid_file_write(supervisor->settings->pid_file);
    }
    if (err == 0) {
        err = choose_store(supervisor);
    }
    if (err == 0 && state && supervisor->embedded) {
        embedded_store_adopt(supervisor->embedded, state->store); /* found by its lock else */
    }
    if (err == 0 && state) {
        err = supervisor_restore_children(supervisor, state);
    }
    return err;
}

void supervisor_tear_down(struct supervisor *supervisor)
{
    children_destroy(&supervisor->children);
    recovery_destroy(&supervisor->recovery);
    embedded_store_destroy(&supervisor->embedded);
    listeners_close(&supervisor->listeners);
    wake_set_done(&supervisor->wakes);
    shm_destroy(&supervisor->shm);
    if (supervisor->generation.supervisor_lock >= 0) {
        pid_file_remove(supervisor->settings->pid_file);
    }
    generation_done(&supervisor->generation);
    for (size_t i = 0; i < 2; i++) {
        if (supervisor->lifeline[i] >= 0) {
            close(supervisor->lifeline[i]);
        }
    }
    free(supervisor->shown_url);
    settings_destroy(&supervisor->settings);
    settings_destroy(&supervisor->configured);
    settings_destroy(&supervisor->next);
    credentials_done(&supervisor->credentials);
    credentials_done(&supervisor->next_credentials);
}
