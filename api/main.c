/* outboxd-api: started by the supervisor only. Wires configuration, shared memory, store, server;
 * drains when told to. */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "api/api.h"
#include "api/event_hub.h"
#include "api/health.h"
#include "api/server.h"
#include "common/access/credentials.h"
#include "common/access/token_table.h"
#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "common/base/inherit_settings.h"
#include "common/base/log.h"
#include "common/base/sandbox.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/store/store.h"

#define HEARTBEAT_MS   500
/* Keep-alive clients get a moment to send what they have begun; a long one where a successor
 * serves: then the next answer of a connection is its last, and nearly none is cut. */
#define STOP_IDLE_MS   1000
#define RETIRE_IDLE_MS 5000
#define DRAIN_MS                                                                                   \
    30000 /* requests that wait for the store; its calls have a shorter limit of their own */
/* No connection is taken before the store has answered: those that an API before us would have
 * served wait in the queue for a moment. A store that is away is answered with 503. */
#define OPEN_EVERY_MS     10
#define OPEN_AT_LATEST_MS 2000
#define STORE_OUTSTANDING 4096 /* per connection; beyond: 503 */
#define STORE_TIMEOUT_MS  10000
#define MISTAKES_MAX      65536

struct process {
    struct api api;
    struct credentials credentials;
    uv_signal_t on_term, on_retire, on_reopen;
    uv_poll_t on_lifeline;
    uv_timer_t heartbeat, opening;
    int64_t started_ms;
    uint32_t listener_count;
};

static void say_ready(void)
{
    static const char ready[] = "READY\n";

    if (write(INHERIT_READY, ready, sizeof(ready) - 1) < 0) {
        log_warn("nobody heard that the API is ready", "error", strerror(errno));
    }
    close(INHERIT_READY);
}

/* ---- store ---- */

static void on_store_state(struct store *store, bool is_up, enum store_result why, void *arg)
{
    struct process *process = arg;

    (void)store;
    if (!is_up) {
        log_warn("the store is away", "why", store_result_name(why));
        return;
    }
    log_info("the store is there");
    health_refresh(process->api.health);
}

static int open_store(struct process *process)
{
    struct api *api = &process->api;
    const struct settings *settings = api->settings;
    const struct store_options options = {
        .url = settings->store_url,
        .connections = settings->api_connections,
        .max_outstanding = STORE_OUTSTANDING,
        .connect_timeout_ms = STORE_TIMEOUT_MS,
        .command_timeout_ms = STORE_TIMEOUT_MS,
        .durability = settings->durability,
        .dedupe_ttl_ms = settings->dedupe_ttl,
        .lock_ttl_ms = settings_lock_ttl_ms(settings),
        .events_max = settings->events_max,
        .metrics = api->metrics,
        .on_state = on_store_state,
        .arg = process,
    };

    return store_open(api->loop, &options, &api->store);
}

/* ---- draining ---- */

static void on_drained(void *arg)
{
    struct process *process = arg;

    if (server_connection_count(process->api.server) > 0) {
        /* Requests that still wait for the store: the library can't be stopped under them. */
        log_warn("draining took too long", "connections",
                 LOG_I64(server_connection_count(process->api.server)));
        exit(0);
    }
    uv_stop(process->api.loop);
}

static void drain(struct process *process, bool close_listeners, int64_t idle_ms, const char *why)
{
    if (!process->api.is_draining) {
        log_info("draining", "why", why, "connections",
                 LOG_I64(server_connection_count(process->api.server)));
    }
    process->api.is_draining = true;
    event_hub_drain(process->api.events);
    server_drain(process->api.server, close_listeners, idle_ms, DRAIN_MS, on_drained, process);
}

static void on_term(uv_signal_t *handle, int number)
{
    struct process *process = handle->data;

    (void)number;
    process->api.has_successor = false;
    drain(process, false, STOP_IDLE_MS, "told to stop");
}

static void on_reopen(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    log_reopen_on_signal();
}

static void on_retire(uv_signal_t *handle, int number)
{
    struct process *process = handle->data;

    (void)number;
    process->api.has_successor = !process->api.is_draining;
    drain(process, false, RETIRE_IDLE_MS, "a successor serves");
}

static void on_lifeline(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    uv_poll_stop(poll); /* end-of-file stays readable */
    ((struct process *)poll->data)->api.has_successor = false;
    drain(poll->data, true, STOP_IDLE_MS, "the supervisor is gone");
}

static void on_heartbeat(uv_timer_t *timer)
{
    struct process *process = timer->data;

    shm_heartbeat(process->api.shm);
    hints_refresh(&process->api.hints);
}

/* ---- start and end ---- */

static void on_opening(uv_timer_t *timer)
{
    struct process *process = timer->data;
    int fds[INHERIT_LISTEN_MAX];

    if (!health_is_known(process->api.health) &&
        clock_mono_ms() - process->started_ms < OPEN_AT_LATEST_MS) {
        return;
    }
    uv_timer_stop(timer);
    for (uint32_t i = 0; i < process->listener_count; i++) {
        fds[i] = INHERIT_LISTEN_FIRST + (int)i;
    }
    const int err = server_listen(process->api.server, fds, process->listener_count);
    credentials_done(&process->credentials); /* the library has what it needs of them */
    if (err < 0) {
        log_error("cannot serve the listening sockets", "error", strerror(-err));
        exit(1); /* the supervisor starts another */
    }
    say_ready();
}

/* A descriptor for each connection, and some. */
static void raise_descriptor_limit(const struct settings *settings)
{
    struct rlimit limit;
    const rlim_t wanted = settings->http_max_connections + 256U;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= wanted ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < wanted) {
        log_warn("the limit on open files is below http.max_connections", "limit",
                 LOG_I64(limit.rlim_cur), "setting", "http.max_connections");
    }
}

static const char *durability_name(const struct settings *settings, char *room, size_t size)
{
    switch (settings->durability.level) {
    case DURABILITY_FSYNC:
        return "fsync";
    case DURABILITY_EVERYSEC:
        return "everysec";
    case DURABILITY_MEMORY:
        return "memory";
    case DURABILITY_REPLICAS:
        break;
    }
    snprintf(room, size, "replicas: %u", settings->durability.replicas);
    return room;
}

static void start_handles(struct process *process)
{
    uv_loop_t *loop = process->api.loop;

    uv_signal_init(loop, &process->on_term);
    process->on_term.data = process;
    uv_signal_start(&process->on_term, on_term, SIGTERM);
    uv_signal_init(loop, &process->on_reopen);
    uv_signal_start(&process->on_reopen, on_reopen, SIGUSR1);
    uv_signal_init(loop, &process->on_retire);
    process->on_retire.data = process;
    uv_signal_start(&process->on_retire, on_retire, INHERIT_RETIRE_SIGNAL);
    uv_poll_init(loop, &process->on_lifeline, INHERIT_LIFELINE);
    process->on_lifeline.data = process;
    uv_poll_start(&process->on_lifeline, UV_READABLE | UV_DISCONNECT, on_lifeline);
    uv_timer_init(loop, &process->heartbeat);
    process->heartbeat.data = process;
    uv_timer_start(&process->heartbeat, on_heartbeat, 0, HEARTBEAT_MS);
    uv_timer_init(loop, &process->opening);
    process->opening.data = process;
    uv_timer_start(&process->opening, on_opening, 0, OPEN_EVERY_MS);
}

static int create_parts(struct process *process, const struct inherit_args *args)
{
    struct api *api = &process->api;
    int err = shm_attach(&api->shm, INHERIT_SHM, args->slot);

    if (err < 0) {
        return err;
    }
    close(INHERIT_SHM);
    api->metrics = metrics_of(api->shm);
    hints_init(&api->hints, api->shm);
    err = health_create(api, &api->health);
    err = err == 0 ? open_store(process) : err;
    err = err == 0 ? event_hub_create(api, &api->events) : err;
    return err == 0 ? server_create(api, &api->server) : err;
}

static void stop(struct process *process)
{
    struct api *api = &process->api;

    api->is_ending = true;
    server_close(api->server);
    health_close(api->health);
    event_hub_close(api->events);
    uv_close((uv_handle_t *)&process->on_term, NULL);
    uv_close((uv_handle_t *)&process->on_retire, NULL);
    uv_close((uv_handle_t *)&process->on_reopen, NULL);
    uv_close((uv_handle_t *)&process->on_lifeline, NULL);
    uv_close((uv_handle_t *)&process->heartbeat, NULL);
    uv_close((uv_handle_t *)&process->opening, NULL);
    store_close(api->store, NULL, NULL);
    uv_run(api->loop, UV_RUN_DEFAULT);
    server_destroy(&api->server);
    health_destroy(&api->health);
    event_hub_destroy(&api->events);
    hints_done(&api->hints);
}

/* Who may call, as the supervisor has checked it. Whatever is not as it should be ends the process:
 * without its tokens it would serve everybody. */
static int read_tokens(const struct settings *settings, const struct credentials *credentials,
                       struct token_table **ret)
{
    struct buf mistakes;

    if (!settings->token_file) {
        return 0;
    }
    if (!credentials->tokens) {
        return -EPROTO;
    }
    buf_init(&mistakes, MISTAKES_MAX);
    const int err = token_table_parse("token_file", span_of(credentials->tokens), ret, &mistakes);
    buf_done(&mistakes); /* told by the supervisor, which let none pass */
    return err;
}

static int run(const struct inherit_args *args, const struct settings *settings)
{
    struct token_table *tokens = NULL;
    char durability[32];
    uv_loop_t loop;
    struct process process = {
        .started_ms = clock_mono_ms(),
        .listener_count = args->listener_count,
        .api =
            {
                .loop = &loop,
                .settings = settings,
                .durability = durability_name(settings, durability, sizeof(durability)),
                .node = args->node,
                .generation = args->generation,
            },
    };
    int err = credentials_read(INHERIT_CREDENTIALS, &process.credentials);

    close(INHERIT_CREDENTIALS);
    err = err == 0 ? read_tokens(settings, &process.credentials, &tokens) : err;
    if (err == 0 && settings->tls_certificate && !process.credentials.certificate) {
        err = -EPROTO;
    }
    if (err < 0) {
        log_error("cannot read the inherited credentials", "error", strerror(-err));
        return 1;
    }
    process.api.tokens = tokens;
    process.api.credentials = &process.credentials;
    err = uv_loop_init(&loop);
    kind_labels_parse(&process.api.kinds, args->kinds ? args->kinds : "");
    raise_descriptor_limit(settings);
    err = err == 0 ? create_parts(&process, args) : err;
    if (err < 0) {
        log_error("cannot start", "error", strerror(-err));
        return 1; /* the process ends: everything goes with it */
    }
    start_handles(&process);
    uv_run(&loop, UV_RUN_DEFAULT);
    log_info("drained");
    stop(&process);
    uv_loop_close(&loop);
    shm_destroy(&process.api.shm);
    token_table_destroy(&tokens);
    credentials_done(&process.credentials);
    return 0;
}

int main(int argc, char **argv)
{
    struct inherit_args args;
    struct settings *settings = NULL;

    if (inherit_parse_args(argc, argv, &args) < 0) {
        return 2;
    }
    inherit_protect();
    if (inherit_read_settings("outboxd-api", &settings) < 0 || !settings) {
        return 2;
    }
    inherit_ignore_signals();
    if (log_init("api", settings->log_level, settings->log_format, settings->log_file) < 0) {
        fprintf(stderr, "outboxd-api: cannot open the log file (setting log.file)\n");
    }
    sandbox_enter_told(settings->sandbox);
    const int lock = inherit_lock_slot(settings->state_dir, args.generation, args.slot);

    if (lock < 0) {
        log_error("cannot take the lock file of this slot", "slot", LOG_I64(args.slot), "error",
                  strerror(-lock));
        return 1;
    }
    if (sodium_init() < 0) {
        log_error("cannot start the cryptography library");
        return 1;
    }
    const int status = run(&args, settings);

    settings_destroy(&settings);
    log_done();
    return status; /* the lock goes with the process */
}
