/* The way down: children drain, an earlier generation's workers may finish on our embedded store,
 * our connections close, the store stops last. A step forward happens when something ended, and
 * never twice. */
#include "supervisor/supervisor_private.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "supervisor/notify.h"

#define OTHERS_LOOK_MS    200
#define STORE_STOP_MS     30000
#define STORE_STOP_NOW_MS 5000

static void close_everything(void *arg)
{
    struct supervisor *supervisor = arg;

    supervisor_enter(supervisor, PHASE_OVER);
    children_close(supervisor->children);
    embedded_store_close(supervisor->embedded);
    signals_close(&supervisor->signals);
    upgrade_close(&supervisor->upgrade);
    uv_close((uv_handle_t *)&supervisor->tick, NULL);
    uv_close((uv_handle_t *)&supervisor->phase_timer, NULL);
    uv_close((uv_handle_t *)&supervisor->alive, NULL);
    log_info("stopped", "exit", LOG_I64(supervisor->exit_status));
}

static int64_t store_limit_ms(const struct supervisor *supervisor)
{
    return supervisor->exit_status == 0 ? STORE_STOP_MS : STORE_STOP_NOW_MS;
}

static void on_connections_closed(void *arg)
{
    struct supervisor *supervisor = arg;

    supervisor->store = NULL;
    supervisor_enter(supervisor, PHASE_STOPPING_STORE);
    if (!supervisor->embedded) {
        close_everything(supervisor);
        return;
    }
    /* A start that failed leaves an adopted server as it was found: old workers may still report to
     * it. */
    const bool leave_running =
        !supervisor->children && embedded_store_is_adopted(supervisor->embedded);

    embedded_store_stop(supervisor->embedded, leave_running, store_limit_ms(supervisor),
                        close_everything, supervisor);
}

static void close_connections(struct supervisor *supervisor)
{
    supervisor_enter(supervisor, PHASE_CLOSING_STORE);
    preflight_stop(&supervisor->preflight);
    recovery_stop(supervisor->recovery);
    store_close(supervisor->store, on_connections_closed, supervisor);
}

static void look_at_others(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    const int64_t waited_ms = clock_mono_ms() - supervisor->phase_since_ms;

    if (waited_ms >= settings_drain_timeout_ms(supervisor->settings) ||
        !generation_others_live(&supervisor->generation)) {
        close_connections(supervisor);
        return;
    }
    uv_timer_start(timer, look_at_others, OTHERS_LOOK_MS, 0); /* can't fail: has a callback */
}

void supervisor_stop_progress(struct supervisor *supervisor)
{
    if (supervisor->phase != PHASE_DRAINING ||
        (supervisor->children && !children_are_down(supervisor->children))) {
        return;
    }
    if (supervisor->embedded && supervisor->children && supervisor->exit_status == 0 &&
        generation_others_live(&supervisor->generation)) {
        log_info("workers of an earlier supervisor still drain: the store stays for them");
        supervisor_enter(supervisor, PHASE_OTHERS);
        uv_timer_start(&supervisor->phase_timer, look_at_others, OTHERS_LOOK_MS, 0);
        return;
    }
    close_connections(supervisor);
}

static void begin(struct supervisor *supervisor, bool is_now)
{
    supervisor_enter(supervisor, PHASE_DRAINING);
    upgrade_stop(&supervisor->upgrade);
    notify_stopping(is_now ? "ending" : "draining");
    /* Ours; the API closes its own when it is told. Nobody shall wait in a queue that is not served
     * any more. */
    listeners_close(&supervisor->listeners);
    preflight_stop(&supervisor->preflight);
    if (supervisor->shm) {
        shm_process_set_state(supervisor->shm, SHM_SLOT_SUPERVISOR, SHM_PROCESS_DRAINING);
    }
    if (supervisor->children && is_now) {
        children_kill(supervisor->children);
    } else if (supervisor->children) {
        children_stop(supervisor->children);
    }
    supervisor_stop_progress(supervisor);
}

void supervisor_stop(struct supervisor *supervisor, bool is_now)
{
    if (is_now && supervisor->phase < PHASE_OVER && supervisor->exit_status == 0) {
        supervisor->exit_status = 1; /* not drained */
    }
    switch (supervisor->phase) {
    case PHASE_STORE:
    case PHASE_RECOVERY:
    case PHASE_BINDING:
    case PHASE_RUNNING:
        begin(supervisor, is_now);
        return;
    case PHASE_DRAINING:
        if (is_now && supervisor->children) {
            children_kill(supervisor->children);
        }
        return;
    case PHASE_OTHERS:
        if (is_now) {
            close_connections(supervisor);
        }
        return;
    case PHASE_STOPPING_STORE:
        if (is_now && supervisor->embedded) {
            embedded_store_stop(supervisor->embedded, false, STORE_STOP_NOW_MS, close_everything,
                                supervisor);
        }
        return;
    case PHASE_CLOSING_STORE:
    case PHASE_OVER:
        return; /* under way, and quick */
    }
}

void supervisor_fail(struct supervisor *supervisor)
{
    if (supervisor->exit_status == 0) {
        supervisor->exit_status = 1;
    }
    if (supervisor->phase < PHASE_DRAINING) {
        begin(supervisor, !supervisor->is_upgraded); /* what older children send may finish */
    }
}
