/* Wires one worker: store, transfers, scheduler, wake-ups, heartbeat, drain. Decides nothing about
 * entries. */
#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/address_rules.h"
#include "worker/claim.h"
#include "worker/held.h"
#include "worker/kind_places.h"
#include "worker/reconcile.h"
#include "worker/sweep.h"
#include "worker/target_gate.h"
#include "worker/transfer.h"

#define HEARTBEAT_MS       500
#define BEAT_MS            2000
#define READY_AT_LATEST_MS 2000 /* a worker whose store is away serves as soon as it is back */
#define STORE_OUTSTANDING  100000
#define STORE_TIMEOUT_MS   10000
#define CONNECTIONS_MIN    64

struct lock_token worker_next_token(struct worker *worker)
{
    struct token_parts parts = {
        .generation = worker->args.generation,
        .slot = worker->args.slot,
        .incarnation = worker->args.incarnation,
        .claim = ++worker->next_claim,
    };

    snprintf(parts.node, sizeof(parts.node), "%s", worker->args.node);
    return lock_token_make(&parts);
}

void worker_is_ready(struct worker *worker)
{
    static const char ready[] = "READY\n";

    if (worker->has_said_ready) {
        return;
    }
    worker->has_said_ready = true;
    if (write(INHERIT_READY, ready, sizeof(ready) - 1) < 0) {
        log_warn("nobody heard that this worker is ready", "error", strerror(errno));
    }
    close(INHERIT_READY);
}

/* ---- hints ---- */

static void on_hint(uint32_t from_slot, uint64_t hint, void *arg)
{
    struct worker *worker = arg;

    (void)from_slot;
    const uint32_t partition = (uint32_t)(hint & 0xff);

    scheduler_mark(worker->scheduler,
                   partition); /* a number that is no partition is ignored there */
    sweep_hint(worker->sweep, partition);
}

static void on_wake(uv_poll_t *poll, int status, int events)
{
    struct worker *worker = poll->data;

    (void)status;
    (void)events;
    wake_clear(worker->wakes.fds[worker->args.slot]);
    shm_hint_drain(worker->shm, on_hint, worker);
}

/* ---- timers ---- */

static void on_beat_answered(enum store_result result, bool yes, void *arg);

struct beat {
    struct worker *worker;
    int64_t sent_boot_ms;
};

static void on_beat_answered(enum store_result result, bool yes, void *arg)
{
    struct beat *beat = arg;

    if (result == STORE_OK && yes) {
        beat->worker->beat_acked_boot_ms = beat->sent_boot_ms;
        metrics_loop_ran(beat->worker->metrics, LABEL_LOOP_BEAT, clock_wall_ms());
    }
    free(beat);
}

/* Every process of a generation raises its counter: a draining worker lives on after its
 * supervisor. */
static void send_beat(struct worker *worker)
{
    struct beat *beat = malloc(sizeof(*beat));

    if (!beat) {
        return;
    }
    *beat = (struct beat){.worker = worker, .sent_boot_ms = clock_boot_ms()};
    store_beat(worker->store, worker->args.node, worker->args.generation, on_beat_answered, beat);
}

static void on_beat(uv_timer_t *timer)
{
    send_beat(timer->data);
}

static void on_heartbeat(uv_timer_t *timer)
{
    struct worker *worker = timer->data;

    shm_heartbeat(worker->shm);
    shm_hint_drain(worker->shm, on_hint, worker); /* whatever wake-ups say */
    if (!worker->is_draining) {
        reconcile_retry(worker->reconcile);
        if (store_is_up(worker->store)) {
            reconcile_look_around(worker->reconcile);
            sweep_tick(worker->sweep);
        }
    }
}

static void on_ready_deadline(uv_timer_t *timer)
{
    worker_is_ready(timer->data);
}

/* ---- draining ---- */

static void on_drain_deadline(uv_timer_t *timer)
{
    const struct worker *worker = timer->data;

    log_warn("drain_timeout is over; what is in flight is left to recovery", "in_flight",
             LOG_I64(held_count(worker->held)));
    exit(1); /* nobody else would end this process: its supervisor is gone */
}

static void drain(struct worker *worker, const char *why)
{
    if (worker->is_draining) {
        return;
    }
    worker->is_draining = true;
    log_info("draining", "why", why, "in_flight", LOG_I64(held_count(worker->held)));
    scheduler_stop(worker->scheduler);
    sweep_stop(worker->sweep);
    kind_places_stop(worker->kind_places);
    worker_check_drained(worker);
}

static void on_term(uv_signal_t *signal, int number)
{
    (void)number;
    drain(signal->data, "told to stop");
}

static void on_reopen(uv_signal_t *signal, int number)
{
    (void)signal;
    (void)number;
    log_reopen_on_signal();
}

static void on_lifeline(uv_poll_t *poll, int status, int events)
{
    struct worker *worker = poll->data;

    (void)status;
    (void)events;
    uv_poll_stop(poll); /* end-of-file stays readable */
    uv_timer_stop(&worker->deadline);
    uv_timer_start(&worker->deadline, on_drain_deadline,
                   (uint64_t)settings_drain_timeout_ms(worker->settings), 0);
    drain(worker, "the supervisor is gone");
}

void worker_check_drained(struct worker *worker)
{
    if (worker->is_draining && held_count(worker->held) == 0 && worker->giving_back == 0 &&
        worker->detached == 0 && scheduler_outstanding(worker->scheduler) == 0 &&
        sweep_outstanding(worker->sweep) == 0) {
        uv_stop(worker->loop);
    }
}

/* ---- the store ---- */

static void on_store_state(struct store *store, bool is_up, enum store_result why, void *arg)
{
    struct worker *worker = arg;

    worker->store = store;
    if (!is_up) {
        log_warn("the store is away", "why", store_result_name(why));
        return;
    }
    log_info("the store is there");
    send_beat(worker);
    if (!worker->is_draining) {
        reconcile_start(worker->reconcile);
    }
}

static int open_store(struct worker *worker)
{
    const struct settings *settings = worker->settings;
    const struct store_options options = {
        .url = settings->store_url,
        .connections = 1,
        .max_outstanding = STORE_OUTSTANDING,
        .connect_timeout_ms = STORE_TIMEOUT_MS,
        .command_timeout_ms = STORE_TIMEOUT_MS,
        .durability = settings->durability,
        .dedupe_ttl_ms = settings->dedupe_ttl,
        .lock_ttl_ms = worker->lock_ttl_ms,
        .events_max = settings->events_max,
        .metrics = worker->metrics,
        .on_state = on_store_state,
        .arg = worker,
    };

    return store_open(worker->loop, &options, &worker->store);
}

/* ---- start and end ---- */

static int create_parts(struct worker *worker)
{
    const struct settings *settings = worker->settings;
    const char *bad = NULL;
    const struct transfer_limits limits = {
        .connect_timeout_ms = settings->connect_timeout,
        .ca_file = settings->targets_ca_file,
        .max_response_bytes = settings->max_response_bytes,
        .max_connections =
            settings->max_in_flight < CONNECTIONS_MIN ? CONNECTIONS_MIN : settings->max_in_flight,
    };
    int err = address_rules_create(&settings->targets_allow, &settings->targets_deny,
                                   &worker->address_rules, &bad);

    if (err < 0) {
        log_error("not an address range", "setting", "targets.allow or targets.deny", "value",
                  bad ? bad : "");
        return err;
    }
    err = transfers_create(worker->loop, &limits, worker->address_rules, &worker->transfers);
    err = err == 0 ? held_create(&worker->held) : err;
    err = err == 0 ? kind_places_create(settings, &worker->kind_places) : err;
    err = err == 0 ? target_gate_create(worker, &worker->target_gate) : err;
    err = err == 0 ? scheduler_create(worker, &worker->scheduler) : err;
    err = err == 0 ? reconcile_create(worker, &worker->reconcile) : err;
    err = err == 0 ? sweep_create(worker, &worker->sweep) : err;
    return err == 0 ? open_store(worker) : err;
}

static void start_handles(struct worker *worker)
{
    uv_signal_init(worker->loop, &worker->on_term);
    worker->on_term.data = worker;
    uv_signal_start(&worker->on_term, on_term, SIGTERM);
    uv_signal_init(worker->loop, &worker->on_reopen);
    uv_signal_start(&worker->on_reopen, on_reopen, SIGUSR1);
    uv_poll_init(worker->loop, &worker->on_lifeline, INHERIT_LIFELINE);
    worker->on_lifeline.data = worker;
    uv_poll_start(&worker->on_lifeline, UV_READABLE | UV_DISCONNECT, on_lifeline);
    uv_poll_init(worker->loop, &worker->on_wake, worker->wakes.fds[worker->args.slot]);
    worker->on_wake.data = worker;
    uv_poll_start(&worker->on_wake, UV_READABLE, on_wake);
    uv_timer_init(worker->loop, &worker->heartbeat);
    worker->heartbeat.data = worker;
    uv_timer_start(&worker->heartbeat, on_heartbeat, 0, HEARTBEAT_MS);
    uv_timer_init(worker->loop, &worker->beat);
    worker->beat.data = worker;
    uv_timer_start(&worker->beat, on_beat, BEAT_MS, BEAT_MS);
    uv_timer_init(worker->loop, &worker->deadline);
    worker->deadline.data = worker;
    uv_timer_start(&worker->deadline, on_ready_deadline, READY_AT_LATEST_MS, 0);
}

static void on_store_closed(void *arg)
{
    struct worker *worker = arg;

    worker->store = NULL;
}

/* Closes everything that has a handle, lets the loop run out, frees the rest. */
static void stop(struct worker *worker)
{
    uv_handle_t *const handles[] = {
        (uv_handle_t *)&worker->on_term,   (uv_handle_t *)&worker->on_lifeline,
        (uv_handle_t *)&worker->on_reopen, (uv_handle_t *)&worker->on_wake,
        (uv_handle_t *)&worker->heartbeat, (uv_handle_t *)&worker->beat,
        (uv_handle_t *)&worker->deadline,
    };

    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
    scheduler_close(worker->scheduler);
    store_close(worker->store, on_store_closed, worker);
    transfers_destroy(&worker->transfers);
    uv_run(worker->loop, UV_RUN_DEFAULT);
    sweep_destroy(&worker->sweep);
    reconcile_destroy(&worker->reconcile);
    scheduler_destroy(&worker->scheduler);
    kind_places_destroy(&worker->kind_places);
    target_gate_destroy(&worker->target_gate);
    held_destroy(&worker->held);
    address_rules_destroy(&worker->address_rules);
}

int worker_run(const struct inherit_args *args, const struct settings *settings)
{
    uv_loop_t loop;
    struct worker worker = {
        .loop = &loop,
        .args = *args,
        .settings = settings,
        .target = target_of_settings(settings),
        .lock_ttl_ms = settings_lock_ttl_ms(settings),
    };
    int err = shm_attach(&worker.shm, INHERIT_SHM, args->slot);

    if (err < 0) {
        log_error("cannot attach the shared memory", "error", strerror(-err));
        return 1;
    }
    close(INHERIT_SHM);
    worker.metrics = metrics_of(worker.shm);
    wake_set_inherit(&worker.wakes, shm_slot_count(worker.shm));
    err = uv_loop_init(&loop);
    if (err == 0) {
        err = create_parts(&worker);
    }
    if (err < 0) {
        log_error("cannot start", "error", strerror(-err));
        return 1; /* the process ends: everything goes with it */
    }
    start_handles(&worker);
    uv_run(&loop, UV_RUN_DEFAULT);
    log_info("drained");
    stop(&worker);
    uv_loop_close(&loop);
    wake_set_done(&worker.wakes);
    shm_destroy(&worker.shm);
    return 0;
}
