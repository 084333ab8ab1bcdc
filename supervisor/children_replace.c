/* Successors beside those that serve, and how many workers there are. Which step comes next:
 * rollover.h; here it is carried out. */
#include <errno.h>
#include <unistd.h>

#include "common/base/log.h"
#include "supervisor/children_private.h"
#include "supervisor/rollover.h"

static struct child *free_slot(struct children *children, enum shm_role role)
{
    for (uint32_t i = 0; i < children->slots; i++) {
        if (children->items[i].role == role && child_is_free(&children->items[i])) {
            return &children->items[i];
        }
    }
    return NULL;
}

/* ---- replacing all ---- */

static bool is_of_the_replacement(const struct child *child)
{
    return child->is_successor && child->is_wanted;
}

static struct rollover_view view_of(struct children *children)
{
    struct rollover_view view = {
        .workers = {.wanted = children->next_workers,
                    .has_free_slot = free_slot(children, SHM_ROLE_WORKER)},
        .apis = {.wanted = 1, .has_free_slot = free_slot(children, SHM_ROLE_API)},
    };

    for (uint32_t i = 0; i < children->slots; i++) {
        const struct child *child = &children->items[i];
        struct rollover_role *role = child->role == SHM_ROLE_API ? &view.apis : &view.workers;

        if (!is_of_the_replacement(child)) {
            continue;
        }
        role->started += child->state == CHILD_STARTING || child->state == CHILD_READY;
        role->ready += child->state == CHILD_READY;
        view.has_failed = view.has_failed || child->state == CHILD_BACKOFF ||
                          child->state == CHILD_FAILED || child->state == CHILD_KILLING;
    }
    return view;
}

static void start_successor(struct children *children, enum shm_role role)
{
    struct child *child = free_slot(children, role); /* there is one: the view said so */

    child->is_wanted = true;
    child->is_successor = true;
    child->has_successor = false;
    child_spawn(child);
}

static void finish(struct children *children, bool is_done)
{
    children->is_replacing = false;
    child_config_close(&children->next_config);
    children->options.replaced(is_done, children->options.arg);
}

/* From here on it can't fail: the old ones go, the new ones are the children. */
static void commit(struct children *children)
{
    child_config_close(&children->config);
    children->config = children->next_config;
    children->next_config = CHILD_CONFIG_NONE;
    for (uint32_t i = 0; i < children->count; i++) {
        struct child *child = &children->items[i];

        if (child->is_successor) {
            child->is_successor = false;
        } else if (child->is_wanted) {
            child->is_wanted = false;
            child->has_successor = true;
            child_event(child, CHILD_EVENT_STOP);
        }
    }
    finish(children, true);
}

/* A successor that was ready may have begun deliveries: it drains like any other. */
static void give_up(struct children *children)
{
    for (uint32_t i = 0; i < children->slots; i++) {
        struct child *child = &children->items[i];

        if (child->is_successor) {
            child->is_successor = false;
            child->is_wanted = false;
            child_event(child, CHILD_EVENT_STOP);
        }
    }
    finish(children, false);
}

static void wait_for_slot(struct children *children)
{
    if (!children->has_told_slots) {
        children->has_told_slots = true;
        log_warn("replacing waits: processes that still drain hold every place", "mend",
                 "wait for their deliveries, or kill the oldest (what it delivers is recovered)");
    }
}

/* True: another step may follow at once. */
static bool step(struct children *children)
{
    const struct rollover_view view = view_of(children);

    switch (rollover_next(&view)) {
    case ROLLOVER_WAIT:
        return false;
    case ROLLOVER_WAIT_FOR_SLOT:
        wait_for_slot(children);
        return false;
    case ROLLOVER_START_WORKER:
        start_successor(children, SHM_ROLE_WORKER);
        return true;
    case ROLLOVER_START_API:
        start_successor(children, SHM_ROLE_API);
        return true;
    case ROLLOVER_COMMIT:
        commit(children);
        return false;
    case ROLLOVER_ABORT:
        give_up(children);
        return false;
    }
    return false;
}

void children_replace_progress(struct children *children)
{
    if (children->is_stepping) {
        return;
    }
    children->is_stepping = true;
    while (children->is_replacing && step(children)) {
    }
    children->is_stepping = false;
}

void children_replace(struct children *children, struct child_config config, uint32_t workers)
{
    children->is_replacing = true;
    children->has_told_slots = false;
    children->next_config = config;
    children->next_workers = workers;
    children_replace_progress(children);
}

bool children_are_being_replaced(const struct children *children)
{
    return children && children->is_replacing;
}

void children_set_limits(struct children *children, int64_t drain_timeout_ms, int64_t watchdog_ms)
{
    children->options.drain_timeout_ms = drain_timeout_ms;
    children->options.watchdog_ms = watchdog_ms;
}

/* ---- one worker more, one fewer ---- */

static bool is_wanted_worker(const struct child *child)
{
    return child->role == SHM_ROLE_WORKER && child->is_wanted;
}

uint32_t children_workers(const struct children *children)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < children->count; i++) {
        count += is_wanted_worker(&children->items[i]);
    }
    return count;
}

int children_add_worker(struct children *children)
{
    return children_stand_in(children, SHM_ROLE_WORKER);
}

int children_stand_in(struct children *children, enum shm_role role)
{
    struct child *child = free_slot(children, role);

    if (!child) {
        return -ENOSPC;
    }
    child->is_wanted = true;
    child->has_successor = false;
    child_spawn(child);
    return 0;
}

int children_remove_worker(struct children *children)
{
    struct child *last = NULL;

    if (children_workers(children) <= 1) {
        return -ERANGE;
    }
    for (uint32_t i = 0; i < children->count; i++) {
        if (is_wanted_worker(&children->items[i])) {
            last = &children->items[i];
        }
    }
    if (!last) {
        return -ERANGE; /* can't be: two were counted */
    }
    last->is_wanted = false;
    child_event(last, CHILD_EVENT_STOP);
    return 0;
}
