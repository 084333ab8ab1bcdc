/* See rollover.h. */
#include "supervisor/rollover.h"

static enum rollover_step next_of(const struct rollover_role *role, enum rollover_step start)
{
    if (role->started > role->ready) {
        return ROLLOVER_WAIT; /* one at a time: a start costs processor time that deliveries need */
    }
    return role->has_free_slot ? start : ROLLOVER_WAIT_FOR_SLOT;
}

enum rollover_step rollover_next(const struct rollover_view *view)
{
    if (view->has_failed) {
        return ROLLOVER_ABORT;
    }
    if (view->workers.ready < view->workers.wanted) {
        return next_of(&view->workers, ROLLOVER_START_WORKER);
    }
    if (view->apis.ready < view->apis.wanted) {
        return next_of(&view->apis, ROLLOVER_START_API);
    }
    return ROLLOVER_COMMIT;
}
