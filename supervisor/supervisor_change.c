/* Changes of a daemon that runs: reload, upgrade, one worker more or fewer. One at a time; what
 * comes meanwhile waits, and several of a kind are one. Whatever fails leaves things as they were.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "supervisor/child_config.h"
#include "supervisor/config_file.h"
#include "supervisor/metric_totals.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "supervisor/supervisor_private.h"

#define WORKERS_MAX 28
#define TEXT_MAX    (4U << 20)

/* ---- when ---- */

static bool is_busy(const struct supervisor *supervisor)
{
    return supervisor->phase < PHASE_RUNNING || children_are_being_replaced(supervisor->children) ||
           upgrade_is_checking(&supervisor->upgrade);
}

static bool is_over(const struct supervisor *supervisor, const char *what)
{
    if (supervisor->phase < PHASE_DRAINING) {
        return false;
    }
    log_warn("stopping: this comes too late", "what", what);
    return true;
}

void supervisor_do_pending(struct supervisor *supervisor)
{
    if (is_busy(supervisor) || supervisor->phase >= PHASE_DRAINING) {
        return;
    }
    if (supervisor->pending.upgrade) {
        supervisor->pending.upgrade = false;
        supervisor->pending.reload = false; /* the new program reads the configuration anyway */
        supervisor_upgrade(supervisor);
    } else if (supervisor->pending.reload) {
        supervisor->pending.reload = false;
        supervisor_reload(supervisor);
    } else if (supervisor->pending.workers != 0) {
        const int by = supervisor->pending.workers;

        supervisor->pending.workers = 0;
        supervisor_change_workers(supervisor, by);
    }
}

/* The end of a change, whatever it was: for the log's readers, systemd and Prometheus. */
static void tell_end(struct supervisor *supervisor, bool is_done, const char *status)
{
    metrics_set(supervisor->metrics, METRIC_config_last_reload_successful, 0, is_done);
    if (is_done) {
        metrics_set(supervisor->metrics, METRIC_config_last_reload_success_timestamp_seconds, 0,
                    (uint64_t)(clock_wall_ms() / 1000));
    }
    notify_ready(status);
}

void supervisor_tell_start(struct supervisor *supervisor)
{
    tell_end(supervisor, true, "serving");
}

/* ---- a new configuration ---- */

static void log_lines(const struct buf *lines, bool are_mistakes)
{
    for (const char *line = lines->len > 0 ? lines->bytes : ""; *line;) {
        const size_t len = strcspn(line, "\n");
        char *text = strndup(line, len);

        if (text && are_mistakes) {
            log_error("a mistake in the configuration", "at", text);
        } else if (text) {
            log_warn("configuration", "at", text);
        }
        free(text);
        line += len + (line[len] == '\n');
    }
}

int supervisor_keep_running(struct settings *fresh, const struct settings *configured,
                            const struct settings *running, struct buf *ret_left)
{
    const int err = settings_keep_running(fresh, configured, running, ret_left);

    if (err == -EACCES) {
        log_error(
            "without token_file other machines could call the API: it goes on to listen as it "
            "did when it was started",
            "mend", "leave token_file in, or restart with the new `listen`");
    } else if (err < 0) {
        log_error("out of memory");
    }
    return err;
}

/* Sets `next` and what belongs to it. False: it is not usable, all told. */
static bool read_next(struct supervisor *supervisor)
{
    struct settings_report report;
    struct configuration fresh = {0};
    struct buf left;

    settings_report_init(&report);
    buf_init(&left, TEXT_MAX);
    int err = config_file_load(supervisor->options->config, CONFIG_CHECK, &fresh, &report);
    log_lines(&report.warnings, false);
    log_lines(&report.errors, true);
    settings_report_done(&report);
    if (err == 0) {
        err = supervisor_keep_running(fresh.settings, supervisor->configured, supervisor->settings,
                                      &left);
    }
    if (err == 0 && left.len > 0) {
        log_warn("changed settings that need a restart: left as they are", "settings", left.bytes);
    }
    buf_done(&left);
    if (err < 0) {
        configuration_done(&fresh);
        return false;
    }
    supervisor->next = fresh.settings;
    supervisor->next_credentials = fresh.credentials;
    return true;
}

void supervisor_replace_children(struct supervisor *supervisor)
{
    struct child_config config;

    if (supervisor_child_config(supervisor, supervisor->next, &supervisor->next_credentials,
                                &config) < 0) {
        supervisor_replaced(false, supervisor);
        return;
    }
    children_replace(supervisor->children, config, settings_worker_count(supervisor->next));
}

static void put_in_force(struct supervisor *supervisor)
{
    settings_destroy(&supervisor->settings);
    credentials_done(&supervisor->credentials);
    supervisor->settings = supervisor->next;
    supervisor->credentials = supervisor->next_credentials;
    supervisor->next = NULL;
    supervisor->next_credentials = (struct credentials){0};
    const struct settings *settings = supervisor->settings;

    log_configure(settings->log_level, settings->log_format);
    children_set_limits(supervisor->children, settings_drain_timeout_ms(settings),
                        settings->watchdog);
    store_set_limits(supervisor->store, settings->dedupe_ttl, settings_lock_ttl_ms(settings));
}

void supervisor_replaced(bool is_done, void *arg)
{
    struct supervisor *supervisor = arg;

    if (is_done) {
        put_in_force(supervisor);
        log_info("new configuration in force: API and workers were replaced", "workers",
                 LOG_I64(settings_worker_count(supervisor->settings)));
    } else {
        settings_destroy(&supervisor->next);
        credentials_done(&supervisor->next_credentials);
        log_error("a new child did not become ready: the old ones go on as they were", "mend",
                  "see its messages above, then send the signal again");
    }
    supervisor->is_upgraded = supervisor->is_upgraded && !is_done;
    tell_end(supervisor, is_done, is_done ? "serving" : "serving; the last reload failed");
    supervisor_do_pending(supervisor);
}

void supervisor_reload(struct supervisor *supervisor)
{
    if (is_over(supervisor, "reload")) {
        return;
    }
    if (is_busy(supervisor)) {
        log_info("the reload waits for what is under way");
        supervisor->pending.reload = true;
        return;
    }
    notify_reloading("reloading");
    if (!read_next(supervisor)) {
        log_error("the configuration has mistakes: nothing was changed", "mend",
                  "correct it (outboxd --check-config), then send HUP again");
        tell_end(supervisor, false, "serving; the last reload was refused");
        return;
    }
    supervisor_replace_children(supervisor);
}

/* ---- another program ---- */

static void note_child(const struct child_record *record, void *arg)
{
    struct upgrade_state *state = arg;

    if (state->child_count < UPGRADE_CHILDREN_MAX) {
        state->children[state->child_count++] = *record;
    }
}

static char *text_of(const struct settings *settings)
{
    struct buf text;
    char *ret = NULL;

    buf_init(&text, TEXT_MAX);
    if (settings_print(settings, true, &text) == 0) {
        ret = buf_steal(&text, NULL);
    }
    buf_done(&text);
    return ret;
}

static struct upgrade_state *make_state(const struct supervisor *supervisor)
{
    struct upgrade_state *state = malloc(sizeof(*state));

    if (!state) {
        return NULL;
    }
    upgrade_state_init(state);
    state->generation = supervisor->generation.number;
    state->supervisor_lock = supervisor->generation.supervisor_lock;
    state->slot_lock = supervisor->generation.slot_lock;
    state->shm = shm_fd(supervisor->shm);
    memcpy(state->lifeline, supervisor->lifeline, sizeof(state->lifeline));
    memcpy(state->listeners, supervisor->listeners.fds, sizeof(state->listeners));
    state->listener_count = supervisor->listeners.count;
    memcpy(state->wakes, supervisor->wakes.fds, sizeof(state->wakes));
    state->store = embedded_store_process(supervisor->embedded);
    kind_labels_print(&supervisor->kinds, state->kinds);
    state->configured = text_of(supervisor->configured);
    state->running = text_of(supervisor->settings);
    state->credentials = credentials_print(&supervisor->credentials);
    state->totals = metric_totals_export(supervisor->shm);
    children_each_record(supervisor->children, note_child, state);
    if (!state->configured || !state->running || !state->credentials) {
        upgrade_state_done(state);
        free(state);
        return NULL;
    }
    return state;
}

static void free_state(struct upgrade_state *state)
{
    if (state) {
        upgrade_state_done(state);
        free(state);
    }
}

static void refuse_upgrade(struct supervisor *supervisor, const char *why)
{
    log_error("no upgrade: nothing was changed", "program", supervisor->upgrade.program.text, "why",
              why, "mend", "install a program that works, then send USR2 again");
    tell_end(supervisor, false, "serving; the last upgrade was refused");
    supervisor_do_pending(supervisor);
}

void supervisor_upgrade_checked(bool is_proven, const char *why, void *arg)
{
    struct supervisor *supervisor = arg;
    struct upgrade_state *state = is_proven ? make_state(supervisor) : NULL;

    if (!is_proven) {
        refuse_upgrade(supervisor, why);
        return;
    }
    log_info("upgrade: the new program takes over", "program", supervisor->upgrade.program.text);
    const int err = state ? upgrade_execute(&supervisor->upgrade, state) : -ENOMEM;
    free_state(state);
    refuse_upgrade(supervisor, strerror(-err));
}

void supervisor_upgrade(struct supervisor *supervisor)
{
    if (is_over(supervisor, "upgrade")) {
        return;
    }
    if (is_busy(supervisor)) {
        log_info("the upgrade waits for what is under way");
        supervisor->pending.upgrade = true;
        return;
    }
    notify_reloading("upgrading");
    struct upgrade_state *state = make_state(supervisor);
    const int err = state ? upgrade_check(&supervisor->upgrade, state) : -ENOMEM;

    free_state(state);
    if (err < 0) {
        refuse_upgrade(supervisor, strerror(-err));
        return;
    }
    log_info("upgrade: the new program is checked", "program", supervisor->upgrade.program.text);
}

/* ---- one worker more, one fewer ---- */

static int add_worker(struct supervisor *supervisor)
{
    return children_workers(supervisor->children) >= WORKERS_MAX
               ? -ERANGE
               : children_add_worker(supervisor->children);
}

void supervisor_change_workers(struct supervisor *supervisor, int by)
{
    int err = 0;

    if (is_over(supervisor, "number of workers")) {
        return;
    }
    if (is_busy(supervisor)) {
        supervisor->pending.workers += by;
        return;
    }
    for (; by > 0 && err == 0; by--) {
        err = add_worker(supervisor);
    }
    for (; by < 0 && err == 0; by++) {
        err = children_remove_worker(supervisor->children);
    }
    const int64_t count = children_workers(supervisor->children);
    if (err == -ENOSPC) {
        log_warn("no place for one more worker: others still drain", "workers", LOG_I64(count));
    } else if (err < 0) {
        log_warn("as many workers as there may be: 1 to 28", "workers", LOG_I64(count));
    } else {
        log_info("number of workers changed", "workers", LOG_I64(count));
    }
}
