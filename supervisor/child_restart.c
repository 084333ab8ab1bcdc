/* Deaths, delays and what is shown of them. */
#include "supervisor/child_restart.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "supervisor/children_private.h"

static int64_t served_ms(const struct child *child, int64_t now_ms)
{
    if (child->ready_ms == 0) {
        return 0;
    }
    /* What hung has served until its last beat, not until it was killed for it. */
    return (child->is_hanging ? child->watchdog.changed_ms : now_ms) - child->ready_ms;
}

static void show(const struct child *child)
{
    const struct shm_restart restart = {
        .deaths = child->history.deaths,
        .last_death = child->last_death,
        .next_start_mono_ms = child->state == CHILD_BACKOFF ? child->next_start_ms : 0,
    };

    if (child->is_foreign) {
        return; /* its slot is another segment's */
    }
    shm_process_set_restart(child->owner->options.shm, child->slot, &restart);
}

void child_restart_note_death(struct child *child, enum label_death_reason reason)
{
    if (reason == LABEL_DEATH_REASON_SPAWN) {
        /* The slot may never have had a process: who looks at the table finds this one all the
         * same. */
        shm_process_begin(child->owner->options.shm, child->slot, child->role, 0, 0);
    }
    child->last_death = reason;
    child->has_died = child->is_wanted;
    if (child->is_wanted) {
        restart_note_death(&child->history, served_ms(child, clock_mono_ms()));
    } else {
        child->history = (struct restart_history){0}; /* it was told to end */
    }
    child->ready_ms = 0;
    show(child);
    if (reason == LABEL_DEATH_REASON_BAD_CONFIG && child->is_wanted) {
        log_error("a child refuses its configuration: it is not started again", "child",
                  shm_role_name(child->role), "slot", LOG_I64(child->slot), "mend",
                  "look at what it said, correct that, and reload (SIGHUP)");
    }
}

int64_t child_restart_delay_ms(struct child *child)
{
    const int64_t delay_ms = restart_delay_ms(&child->history);
    const bool is_looping = child->history.deaths >= SHM_LOOP_DEATHS;

    child->next_start_ms = clock_mono_ms() + delay_ms;
    show(child);
    if (child->is_wanted) {
        log_write(is_looping ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO,
                  is_looping ? "a child dies again and again" : "a child is started again", "child",
                  shm_role_name(child->role), "slot", LOG_I64(child->slot), "deaths_in_a_row",
                  LOG_I64(child->history.deaths), "last", shm_death_name(child->last_death),
                  "next_start_after_ms", LOG_I64(delay_ms), (const char *)NULL);
    }
    return delay_ms;
}

void child_restart_look(struct child *child, int64_t now_ms)
{
    if (child->state == CHILD_READY && !child->is_hanging) {
        const uint32_t forgotten = restart_note_serving(&child->history, served_ms(child, now_ms));

        if (forgotten >= SHM_LOOP_DEATHS) {
            log_info("a child serves again", "child", shm_role_name(child->role), "slot",
                     LOG_I64(child->slot), "after_deaths", LOG_I64(forgotten));
        }
    }
    /* Also where nothing changed: somebody may have scribbled over it. */
    show(child);
}
