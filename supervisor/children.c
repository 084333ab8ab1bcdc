/* Children in their slots. Callbacks record what happened and call child_event(), the one function
 * that changes a child's state, tells it to the process table and to the log, and carries the
 * action out. */
#include "supervisor/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "common/base/log.h"
#include "supervisor/child_process.h"
#include "supervisor/child_restart.h"
#include "supervisor/children_private.h"

#define START_TIMEOUT_MS 60000
#define KILL_AGAIN_MS    5000

static void on_timer(uv_timer_t *timer)
{
    struct child *child = timer->data;

    if (child->state == CHILD_STARTING) {
        log_warn("a child is not ready in time", "child", shm_role_name(child->role), "slot",
                 LOG_I64(child->slot));
    } else if (child->state == CHILD_DRAINING) {
        log_warn("a child did not drain in time", "child", shm_role_name(child->role), "slot",
                 LOG_I64(child->slot));
    }
    child_event(child, CHILD_EVENT_TIMEOUT);
}

static void arm(struct child *child, int64_t ms)
{
    uv_timer_start(&child->timer, on_timer, (uint64_t)ms,
                   0); /* can't fail: has a callback, isn't closing */
}

static void on_ready_line(struct child *child)
{
    child_event(child, CHILD_EVENT_READY);
}

/* ---- what states and actions mean ---- */

static enum shm_process_state shown_state(enum child_state state)
{
    switch (state) {
    case CHILD_STARTING:
        return SHM_PROCESS_STARTING;
    case CHILD_READY:
        return SHM_PROCESS_READY;
    case CHILD_DRAINING:
    case CHILD_KILLING:
        return SHM_PROCESS_DRAINING;
    case CHILD_BACKOFF:
        return SHM_PROCESS_WAITING;
    case CHILD_FAILED:
        return SHM_PROCESS_FAILED;
    case CHILD_DOWN:
    case CHILD_STATE_COUNT:
        break;
    }
    return SHM_PROCESS_DOWN;
}

/* A slot that nobody is wanted in any more vanishes from the table: what stays down there is a
 * process that is missing. */
static void show_state(const struct child *child)
{
    if (child->is_foreign) {
        return;
    }
    if (child->state == CHILD_DOWN && !child->is_wanted) {
        shm_process_forget(child->owner->options.shm, child->slot);
    } else {
        shm_process_set_state(child->owner->options.shm, child->slot, shown_state(child->state));
    }
}

/* Each state's own time limit; those without one have no timer. BACKOFF's is the delay, armed by
 * the action. */
static void enter(struct child *child)
{
    switch (child->state) {
    case CHILD_STARTING:
        arm(child, START_TIMEOUT_MS);
        break;
    case CHILD_DRAINING:
        arm(child, child->owner->options.drain_timeout_ms);
        break;
    case CHILD_KILLING:
        arm(child, KILL_AGAIN_MS);
        break;
    case CHILD_READY:
        child->ready_ms = clock_mono_ms();
        child->has_served = true;
        watchdog_reset(&child->watchdog, clock_mono_ms());
        uv_timer_stop(&child->timer);
        break;
    case CHILD_DOWN:
    case CHILD_BACKOFF:
    case CHILD_FAILED:
    case CHILD_STATE_COUNT:
        uv_timer_stop(&child->timer);
        break;
    }
    show_state(child);
}

void child_spawn(struct child *child)
{
    const int err = child_process_spawn(child, on_ready_line);

    if (err < 0) {
        log_error("cannot start a child", "child", shm_role_name(child->role), "program",
                  child_process_program(child), "error", strerror(-err));
        child_restart_note_death(child, LABEL_DEATH_REASON_SPAWN);
        child_event(child, CHILD_EVENT_EXITED);
        return;
    }
    if (child->has_died) {
        metrics_add_restart(child->owner->options.metrics,
                            child->role == SHM_ROLE_API ? LABEL_ROLE_API : LABEL_ROLE_WORKER,
                            child->last_death, 1);
    }
    child_event(child, CHILD_EVENT_SPAWNED);
}

static void act(struct child *child, enum child_action action)
{
    switch (action) {
    case CHILD_ACTION_SPAWN:
        child_spawn(child);
        break;
    case CHILD_ACTION_TERM:
        /* Not reaped yet, so the number is its own. */
        (void)kill(child->pid, child->has_successor && child->role == SHM_ROLE_API
                                   ? INHERIT_RETIRE_SIGNAL
                                   : SIGTERM);
        break;
    case CHILD_ACTION_KILL:
        (void)kill(child->pid, SIGKILL);
        break;
    case CHILD_ACTION_DELAY:
        arm(child, child_restart_delay_ms(child));
        break;
    case CHILD_ACTION_NONE:
    case CHILD_ACTION_IGNORE:
    case CHILD_ACTION_UNDEFINED:
        break;
    }
}

void child_event(struct child *child, enum child_event event)
{
    const struct child_step step = child_fsm_step(child->state, event);
    const enum child_state from = child->state;

    if (step.action == CHILD_ACTION_IGNORE) {
        log_debug("event ignored", "child", shm_role_name(child->role), "slot",
                  LOG_I64(child->slot), "state", child_state_name(from), "event",
                  child_event_name(event));
        return;
    }
    child->state = step.next;
    if (from != step.next) {
        log_info("child changes state", "child", shm_role_name(child->role), "slot",
                 LOG_I64(child->slot), "child_pid", LOG_I64(child->pid), "from",
                 child_state_name(from), "to", child_state_name(step.next), "event",
                 child_event_name(event));
        enter(child);
    }
    act(child, step.action);
    /* Nobody wants it any more: it does not come again. */
    if (!child->is_wanted && (child->state == CHILD_BACKOFF || child->state == CHILD_FAILED)) {
        child_event(child, CHILD_EVENT_STOP);
        return;
    }
    children_replace_progress(child->owner);
    child->owner->options.changed(child->owner->options.arg);
}

bool child_is_free(const struct child *child)
{
    return !child->is_foreign && child->state == CHILD_DOWN && !child->is_wanted;
}

void child_resume(struct child *child, int64_t limit_ms)
{
    enter(child);
    if (limit_ms >= 0) {
        arm(child, limit_ms);
    }
}

/* ---- deaths ---- */

static void log_death(const struct child *child, int wait_status, enum death death)
{
    const enum log_level level =
        death == DEATH_CLEAN || !child->is_wanted ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR;
    const int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);

    log_write(level, "a child ended", "child", shm_role_name(child->role), "slot",
              LOG_I64(child->slot), "child_pid", LOG_I64(child->pid), "by",
              child->is_hanging ? "watchdog" : death_name(death), "number", LOG_I64(number),
              (const char *)NULL);
}

static enum label_death_reason label_of(const struct child *child, enum death death)
{
    if (child->is_hanging) {
        return LABEL_DEATH_REASON_WATCHDOG;
    }
    switch (death) {
    case DEATH_CLEAN:
    case DEATH_FAILED:
        return LABEL_DEATH_REASON_EXIT;
    case DEATH_BAD_CONFIG:
        return LABEL_DEATH_REASON_BAD_CONFIG;
    case DEATH_SIGNAL:
        return LABEL_DEATH_REASON_SIGNAL;
    }
    return LABEL_DEATH_REASON_EXIT;
}

static struct child *find(struct children *children, pid_t pid)
{
    for (uint32_t i = 0; i < children->count; i++) {
        if (children->items[i].pid == pid) {
            return &children->items[i];
        }
    }
    return NULL;
}

bool children_reaped(struct children *children, pid_t pid, int wait_status)
{
    struct child *child = children ? find(children, pid) : NULL;
    const enum death death = death_of(wait_status);
    const struct children_options *options;

    if (!child) {
        return false;
    }
    options = &children->options;
    const bool is_missed = child->is_foreign && child->is_wanted;

    log_death(child, wait_status, death);
    child_process_done(child);
    if (!child->is_foreign) {
        shm_process_end(options->shm, child->slot);
    }
    child_restart_note_death(child, label_of(child, death));
    child->is_hanging = false;
    child->has_served = false;
    child->pid = 0;
    child->is_wanted = child->is_wanted && !child->is_foreign;
    options->died(&(struct child_record){.slot = child->slot,
                                         .role = child->role,
                                         .generation = child->generation,
                                         .incarnation = child->incarnation},
                  options->arg);
    child_event(child, death == DEATH_BAD_CONFIG ? CHILD_EVENT_FAILED : CHILD_EVENT_EXITED);
    if (is_missed && !children->is_replacing) {
        children_stand_in(children, child->role);
    }
    return true;
}

/* ---- all of them ---- */

void children_start(struct children *children, uint32_t workers)
{
    for (uint32_t i = 0; i < children->count; i++) {
        struct child *child = &children->items[i];

        child->is_wanted =
            child->role == SHM_ROLE_API
                ? child->slot == SHM_SLOT_API_FIRST
                : child->slot - SHM_SLOT_WORKER_FIRST < workers && child->role == SHM_ROLE_WORKER;
    }
    for (uint32_t i = 0; i < children->count; i++) {
        if (children->items[i].is_wanted && children->items[i].state == CHILD_DOWN) {
            child_spawn(&children->items[i]);
        }
    }
}

bool children_are_ready(const struct children *children)
{
    for (uint32_t i = 0; i < children->count; i++) {
        if (children->items[i].is_wanted && children->items[i].state != CHILD_READY) {
            return false;
        }
    }
    return true;
}

bool children_are_down(const struct children *children)
{
    for (uint32_t i = 0; i < children->count; i++) {
        if (children->items[i].state != CHILD_DOWN) {
            return false;
        }
    }
    return true;
}

static void all(struct children *children, enum child_event event)
{
    children->is_replacing = false;
    for (uint32_t i = 0; i < children->count; i++) {
        children->items[i].is_wanted = false;
        children->items[i].has_successor = false;
    }
    for (uint32_t i = 0; i < children->count; i++) {
        if (children->items[i].state != CHILD_DOWN) {
            child_event(&children->items[i], event);
        }
    }
}

void children_stop(struct children *children)
{
    all(children, CHILD_EVENT_STOP);
}

void children_kill(struct children *children)
{
    all(children, CHILD_EVENT_KILL);
}

static void look_at(struct child *child, int64_t now_ms)
{
    struct shm_process process;
    const bool is_watched = child->state == CHILD_READY || child->state == CHILD_DRAINING;

    if (!is_watched || child->is_hanging || child->is_foreign ||
        shm_process_read(child->owner->options.shm, child->slot, &process) < 0) {
        return; /* an entry that is garbage says nothing */
    }
    if (watchdog_has_expired(&child->watchdog, process.heartbeat_mono_ms, now_ms,
                             child->owner->options.watchdog_ms)) {
        child->is_hanging = true;
        log_error("a child makes no progress: killed", "child", shm_role_name(child->role), "slot",
                  LOG_I64(child->slot), "child_pid", LOG_I64(child->pid));
        child_event(child, CHILD_EVENT_TIMEOUT);
    }
}

void children_watch(struct children *children)
{
    const int64_t now_ms = clock_mono_ms();
    /* We were stopped or starved ourselves: then the children's beats that we missed are not
     * missing. */
    const bool were_we_away =
        now_ms - children->watched_ms > CHILDREN_WATCH_MS + children->options.watchdog_ms / 4;

    children->watched_ms = now_ms;
    for (uint32_t i = 0; i < children->count; i++) {
        if (were_we_away) {
            watchdog_reset(&children->items[i].watchdog, now_ms);
        }
        look_at(&children->items[i], now_ms);
        child_restart_look(&children->items[i], now_ms);
        /* Whoever scribbled over the table: who looks there for workers finds them again. */
        show_state(&children->items[i]);
    }
}

void children_reopen_logs(const struct children *children)
{
    for (uint32_t i = 0; i < children->count; i++) {
        const struct child *child = &children->items[i];

        if (child->pid > 0 && child->has_served) {
            (void)kill(child->pid, SIGUSR1); /* not reaped yet, so the number is its own */
        }
    }
}

void children_hint_workers(struct children *children, uint64_t hint)
{
    for (uint32_t i = 0; i < children->count; i++) {
        const struct child *child = &children->items[i];

        if (child->role == SHM_ROLE_WORKER && child->state == CHILD_READY && !child->is_foreign) {
            (void)shm_hint_send(children->options.shm, children->options.wakes, child->slot, hint);
        }
    }
}

int children_create(struct children **ret, const struct children_options *options,
                    struct child_config config, uint32_t foreign)
{
    const uint32_t slots = shm_slot_count(options->shm) - SHM_SLOT_API_FIRST;
    const uint32_t count = slots + foreign;
    struct children *children = calloc(1, sizeof(*children) + count * sizeof(children->items[0]));

    if (!children) {
        child_config_close(&config);
        return -ENOMEM;
    }
    children->options = *options;
    children->config = config;
    children->next_config = CHILD_CONFIG_NONE;
    children->slots = slots;
    children->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct child *child = &children->items[i];

        child->owner = children;
        child->is_foreign = i >= slots;
        child->slot = child->is_foreign ? 0 : SHM_SLOT_API_FIRST + i;
        child->role = shm_slot_role(child->slot);
        (void)uv_timer_init(options->loop, &child->timer); /* never fails */
        child->timer.data = child;
    }
    *ret = children;
    return 0;
}

void children_close(struct children *children)
{
    for (uint32_t i = 0; children && i < children->count; i++) {
        child_process_done(&children->items[i]);
        uv_close((uv_handle_t *)&children->items[i].timer, NULL);
    }
}

void children_destroy(struct children **children_ptr)
{
    struct children *children = *children_ptr;

    *children_ptr = NULL;
    if (children) {
        child_config_close(&children->config);
        child_config_close(&children->next_config);
        free(children);
    }
}
