/* Wires the parts to one loop and walks through the phases of a start. What a signal means stands
 * here, once. Changing: supervisor_change.c, stopping: supervisor_stop.c. */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor_private.h"

#define BIND_RETRY_MS      200
#define BIND_LIMIT_MS      15000
#define STORE_TIMEOUT_MS   30000
#define PREFLIGHT_AGAIN_MS 2000
#define STORE_CONNECTIONS  2
#define STORE_OUTSTANDING  100000
#define STORE_CONNECT_MS   5000
#define STORE_COMMAND_MS   10000

void supervisor_enter(struct supervisor *supervisor, enum phase phase)
{
    supervisor->phase = phase;
    supervisor->phase_since_ms = clock_mono_ms();
    uv_timer_stop(&supervisor->phase_timer);
}

/* ---- signals ---- */

static void reap(struct supervisor *supervisor)
{
    int status;

    /* SIGCHLD coalesces: until nothing is left. */
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
        if (!embedded_store_reaped(supervisor->embedded, pid, status) &&
            !upgrade_reaped(&supervisor->upgrade, pid, status) &&
            !children_reaped(supervisor->children, pid, status)) {
            log_debug("reaped a process that is not ours", "other_pid", LOG_I64(pid));
        }
    }
}

static void on_signal(enum signal_action action, const char *name, void *arg)
{
    struct supervisor *supervisor = arg;

    switch (action) {
    case SIGNAL_REAP:
        reap(supervisor);
        return;
    case SIGNAL_DRAIN:
        log_info("signal: drain", "signal", name);
        supervisor_stop(supervisor, supervisor->phase >= PHASE_DRAINING);
        return;
    case SIGNAL_NOW:
        log_info("signal: end at once", "signal", name);
        supervisor_stop(supervisor, true);
        return;
    case SIGNAL_REOPEN_LOG:
        log_reopen_on_signal();
        privileges_give_file(&supervisor->privileges, supervisor->settings->log_file);
        if (supervisor->children) {
            children_reopen_logs(supervisor->children);
        }
        return;
    case SIGNAL_RELOAD:
        log_info("signal: reload", "signal", name);
        supervisor_reload(supervisor);
        return;
    case SIGNAL_UPGRADE:
        log_info("signal: upgrade", "signal", name);
        supervisor_upgrade(supervisor);
        return;
    case SIGNAL_MORE_WORKERS:
        supervisor_change_workers(supervisor, 1);
        return;
    case SIGNAL_LESS_WORKERS:
        supervisor_change_workers(supervisor, -1);
        return;
    }
}

/* ---- the store ---- */

static void on_process_facts(enum store_result result, const struct server_facts *facts, void *arg)
{
    struct supervisor *supervisor = arg;

    supervisor->is_asking_process = false;
    if (result == STORE_OK && embedded_store_wants_process(supervisor->embedded)) {
        embedded_store_adopt(supervisor->embedded, (pid_t)facts->process_id);
    }
}

/* The server that a dead supervisor left: which process is it? */
static void ask_process(struct supervisor *supervisor)
{
    if (embedded_store_wants_process(supervisor->embedded) && !supervisor->is_asking_process &&
        supervisor->store && supervisor->phase < PHASE_CLOSING_STORE &&
        store_is_up(supervisor->store)) {
        supervisor->is_asking_process = true;
        store_facts(supervisor->store, on_process_facts, supervisor);
    }
}

static void on_store_state(struct store *store, bool is_up, enum store_result why, void *arg)
{
    struct supervisor *supervisor = arg;

    (void)store;
    if (supervisor->phase == PHASE_STORE) {
        preflight_store_state(&supervisor->preflight, is_up, why);
    } else if (!is_up && !supervisor->has_store_failed) {
        supervisor->has_store_failed = true;
        log_error("the store is away: nothing is accepted meanwhile", "store",
                  supervisor->shown_url, "why", store_result_help(why));
    } else if (is_up && supervisor->has_store_failed) {
        supervisor->has_store_failed = false;
        log_info("the store is back", "store", supervisor->shown_url);
    }
    if (is_up) {
        ask_process(supervisor);
    }
}

static void on_store_lost(struct store *store, void *arg)
{
    struct supervisor *supervisor = arg;

    (void)store;
    if (supervisor->recovery) {
        recovery_connection_lost(supervisor->recovery);
    }
}

/* ---- the phases of a start ---- */

static void on_child_died(const struct child_record *child, void *arg)
{
    struct supervisor *supervisor = arg;

    /* Before there is a recovery its first pass is still to come. */
    if (child->role == SHM_ROLE_WORKER && supervisor->recovery &&
        supervisor->phase < PHASE_CLOSING_STORE) {
        recovery_of_process(supervisor->recovery, child->generation, child->slot,
                            child->incarnation);
    }
}

static void on_children_changed(void *arg)
{
    struct supervisor *supervisor = arg;

    if (supervisor->phase >= PHASE_DRAINING) {
        supervisor_stop_progress(supervisor);
        return;
    }
    if (supervisor->phase == PHASE_RUNNING && !supervisor->is_ready &&
        children_are_ready(supervisor->children)) {
        supervisor->is_ready = true;
        log_info("ready", "workers", LOG_I64(settings_worker_count(supervisor->settings)));
        supervisor_tell_start(supervisor);
    }
}

static void on_recovered(uint32_t partition, void *arg)
{
    struct supervisor *supervisor = arg;

    if (supervisor->children) {
        children_hint_workers(supervisor->children, partition);
    }
}

int supervisor_make_children(struct supervisor *supervisor, uint32_t foreign)
{
    const struct children_options options = {
        .loop = &supervisor->loop,
        .shm = supervisor->shm,
        .wakes = &supervisor->wakes,
        .listeners = &supervisor->listeners,
        .generation = &supervisor->generation,
        .metrics = supervisor->metrics,
        .privileges = &supervisor->privileges,
        .kinds = &supervisor->kinds,
        .lifeline_fd = supervisor->lifeline[0],
        .api = supervisor->api,
        .worker = supervisor->worker,
        .drain_timeout_ms = settings_drain_timeout_ms(supervisor->settings),
        .watchdog_ms = supervisor->settings->watchdog,
        .died = on_child_died,
        .changed = on_children_changed,
        .replaced = supervisor_replaced,
        .arg = supervisor,
    };
    struct child_config config;
    const int err = supervisor_child_config(supervisor, supervisor->settings,
                                            &supervisor->credentials, &config);

    return err < 0 ? err : children_create(&supervisor->children, &options, config, foreign);
}

static void run_children(struct supervisor *supervisor)
{
    supervisor_enter(supervisor, PHASE_RUNNING);
    shm_process_set_state(supervisor->shm, SHM_SLOT_SUPERVISOR, SHM_PROCESS_READY);
    recovery_watch(supervisor->recovery);
    if (supervisor->is_upgraded) {
        supervisor_replace_children(supervisor);
        return;
    }
    if (supervisor_make_children(supervisor, 0) < 0) {
        log_error("out of memory");
        supervisor_fail(supervisor);
        return;
    }
    children_start(supervisor->children, settings_worker_count(supervisor->settings));
    supervisor_do_pending(supervisor);
}

/* Who may connect is as if the children had bound them. */
static void give_sockets(const struct supervisor *supervisor)
{
    const struct text_list *addresses = &supervisor->settings->listen;

    for (size_t i = 0; i < addresses->count; i++) {
        if (strncmp(addresses->items[i], "unix:", 5) == 0) {
            privileges_give_file(&supervisor->privileges, addresses->items[i] + 5);
        }
    }
}

static void bind_addresses(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    const char *address = NULL, *reason = NULL;
    const int err =
        listeners_open(&supervisor->listeners, &supervisor->settings->listen, &address, &reason);
    const int64_t waited_ms = clock_mono_ms() - supervisor->phase_since_ms;

    if (err == 0) {
        give_sockets(supervisor);
        run_children(supervisor);
        return;
    }
    /* A dead supervisor's API closes its listener at once when it notices: a matter of moments. */
    if (err == -EADDRINUSE && waited_ms < BIND_LIMIT_MS) {
        if (waited_ms < BIND_RETRY_MS / 2) { /* once */
            log_warn("an address is in use: trying again for a while", "listen", address);
        }
        uv_timer_start(timer, bind_addresses, BIND_RETRY_MS, 0); /* can't fail: has a callback */
        return;
    }
    log_error("cannot listen", "listen", address, "error", reason ? reason : strerror(-err), "mend",
              "set `listen` to an address of this machine that is free");
    supervisor_fail(supervisor);
}

static void on_recovery_done(void *arg)
{
    struct supervisor *supervisor = arg;

    if (supervisor->phase == PHASE_RECOVERY) {
        supervisor_enter(supervisor, PHASE_BINDING);
        bind_addresses(&supervisor->phase_timer);
    }
}

static void start_preflight(struct supervisor *supervisor);

static void preflight_again(uv_timer_t *timer)
{
    start_preflight(timer->data);
}

static void on_preflight(enum preflight_verdict verdict, void *arg)
{
    struct supervisor *supervisor = arg;
    const struct recovery_options options = {
        .loop = &supervisor->loop,
        .store = supervisor->store,
        .generation = &supervisor->generation,
        .metrics = supervisor->metrics,
        .recovered = on_recovered,
        .arg = supervisor,
    };

    if (verdict != PREFLIGHT_PASSED && supervisor->is_upgraded) {
        /* Children serve, or wait for the store: no reason to end them. */
        uv_timer_start(&supervisor->phase_timer, preflight_again, PREFLIGHT_AGAIN_MS, 0);
        return;
    }
    if (verdict != PREFLIGHT_PASSED || recovery_create(&supervisor->recovery, &options) < 0) {
        supervisor_fail(supervisor);
        return;
    }
    supervisor_enter(supervisor, PHASE_RECOVERY);
    recovery_at_start(supervisor->recovery, on_recovery_done, supervisor);
}

/* A server that an earlier supervisor started with weaker settings: ours to start anew. */
static bool mend_store(void *arg)
{
    struct supervisor *supervisor = arg;

    if (!embedded_store_is_adopted(supervisor->embedded)) {
        return embedded_store_wants_process(supervisor->embedded); /* soon */
    }
    embedded_store_restart(supervisor->embedded);
    return true;
}

/* ---- the run ---- */

static int open_store(struct supervisor *supervisor)
{
    const struct settings *settings = supervisor->settings;
    const struct store_options options = {
        .url = settings->store_url,
        .connections = STORE_CONNECTIONS,
        .max_outstanding = STORE_OUTSTANDING,
        .connect_timeout_ms = STORE_CONNECT_MS,
        .command_timeout_ms = STORE_COMMAND_MS,
        .durability = settings->durability,
        .dedupe_ttl_ms = settings->dedupe_ttl,
        .lock_ttl_ms = settings_lock_ttl_ms(settings),
        .events_max = settings->events_max,
        .metrics = supervisor->metrics,
        .on_state = on_store_state,
        .on_lost = on_store_lost,
        .arg = supervisor,
    };
    const int err = store_open(&supervisor->loop, &options, &supervisor->store);

    if (err < 0) {
        log_error("cannot open the store", "store", supervisor->shown_url, "error", strerror(-err));
        return err;
    }
    start_preflight(supervisor);
    return 0;
}

static void start_preflight(struct supervisor *supervisor)
{
    const struct preflight_options preflight = {
        .loop = &supervisor->loop,
        .store = supervisor->store,
        .durability = supervisor->settings->durability,
        .advice = supervisor->embedded ? "look into store/valkey.log in the state directory"
                                       : "start it, or check `store.url`",
        .url = supervisor->shown_url,
        .timeout_ms = STORE_TIMEOUT_MS,
        .mend = supervisor->embedded ? mend_store : NULL,
        .done = on_preflight,
        .arg = supervisor,
    };

    preflight_start(&supervisor->preflight, &preflight);
}

static void on_tick(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;

    shm_heartbeat(supervisor->shm);
    shm_mend(supervisor->shm); /* outboxctl attaches at any time */
    if (supervisor->children && supervisor->phase <= PHASE_DRAINING) {
        children_watch(supervisor->children);
    }
    ask_process(supervisor);
    status_tick(supervisor);
}

int supervisor_run(struct configuration *configuration, const struct supervisor_options *options,
                   const struct upgrade_state *state)
{
    struct supervisor supervisor = {
        .options = options,
        .settings = configuration->settings,
        .credentials = configuration->credentials,
        .phase = PHASE_STORE,
        .lifeline = {-1, -1},
        .preflight = {.is_over = true},
    };
    struct supervisor *self = &supervisor;

    *configuration = (struct configuration){0};

    generation_init(&self->generation);
    listeners_init(&self->listeners);
    wake_set_init(&self->wakes);
    if (uv_loop_init(&self->loop) < 0) {
        log_error("cannot make an event loop");
        settings_destroy(&self->settings);
        credentials_done(&self->credentials);
        return 1;
    }
    (void)uv_timer_init(&self->loop, &self->tick); /* never fails */
    (void)uv_timer_init(&self->loop, &self->phase_timer);
    (void)uv_timer_init(&self->loop, &self->alive);
    self->tick.data = self;
    self->phase_timer.data = self;
    if (supervisor_set_up(self, state) < 0 ||
        signals_open(&self->signals, &self->loop, on_signal, self) < 0 || open_store(self) < 0) {
        supervisor_fail(self);
    } else {
        uv_timer_start(&self->tick, on_tick, 0, CHILDREN_WATCH_MS); /* can't fail: has a callback */
        reap(self); /* those whose signal the program before us took */
        notify_watchdog_start(&self->alive);
    }
    uv_run(&self->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&self->loop) < 0) {
        log_warn("something of the event loop was not closed");
    }
    supervisor_tear_down(self);
    return self->exit_status;
}
