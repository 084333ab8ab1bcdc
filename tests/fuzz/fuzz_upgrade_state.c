/* The slip that a supervisor hands to its successor, written by who knows whom: never a crash; what
 * is taken lies within bounds. */
#include <jansson.h>

#include "common/shm/metrics.h"
#include "supervisor/metric_totals.h"
#include "supervisor/upgrade_state.h"
#include "tests/fuzz/fuzz.h"

static int check_fd(int fd, void *arg)
{
    (void)arg;
    MUST_HOLD(fd >= 3); /* never one of ours: nobody closes standard input for it */
    return 0;
}

static void check_taken(const struct upgrade_state *state)
{
    MUST_HOLD(upgrade_state_each_fd(state, check_fd, NULL) == 0);
    MUST_HOLD(state->configured && state->running && state->store >= 0);
    MUST_HOLD(state->child_count <= UPGRADE_CHILDREN_MAX);
    for (size_t i = 0; i < state->child_count; i++) {
        const struct child_record *child = &state->children[i];

        MUST_HOLD(child->slot < SHM_SLOT_MAX && child->pid >= 0);
        MUST_HOLD((unsigned)child->state < CHILD_STATE_COUNT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    json_t *json = json_loadb((const char *)bytes, len, 0, NULL);
    struct upgrade_state state;

    upgrade_state_init(&state);
    if (json && upgrade_state_read(json, &state)) {
        struct metrics *metrics = metrics_create_private();

        check_taken(&state);
        MUST_HOLD(metrics);
        metric_totals_import(metrics, state.totals);
        metrics_destroy(&metrics);
    }
    upgrade_state_done(&state);
    json_decref(json);
    return 0;
}
