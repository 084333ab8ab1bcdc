/* Asks the store how it is and what stands in it. An answer that is too old, or that lacks a
 * partition, is none. */
#include "api/health.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "api/api.h"
#include "common/base/clock.h"
#include "common/base/settings.h"
#include "common/core/keys.h"
#include "common/shm/metrics.h"
#include "common/store/store.h"

#define ASK_EVERY_MS 2000
#define FRESH_MS     10000 /* older answers say nothing of now */

struct health {
    struct api *api;
    uv_timer_t timer;
    bool is_asking_facts;
    struct server_facts facts;
    enum store_result facts_result;
    int64_t facts_ms;  /* monotonic; 0: none yet */
    uint32_t counting; /* answers still to come */
    bool has_failed;   /* one of them did not come */
    struct counts_answer next, counts;
    int64_t counts_ms; /* monotonic; 0: none yet */
};

/* ---- asking ---- */

static void on_facts(enum store_result result, const struct server_facts *facts, void *arg)
{
    struct health *health = arg;

    health->is_asking_facts = false;
    health->facts_result = result;
    health->facts_ms = clock_mono_ms();
    if (facts) {
        health->facts = *facts;
    }
}

static void on_counts(enum store_result result, const struct counts_answer *answer, void *arg)
{
    struct health *health = arg;

    health->has_failed |= result != STORE_OK;
    if (result == STORE_OK) {
        for (unsigned status = 0; status < STATUS_COUNT; status++) {
            health->next.by_status[status] += answer->by_status[status];
        }
        health->next.locked += answer->locked;
        if (answer->oldest_open_age_ms > health->next.oldest_open_age_ms) {
            health->next.oldest_open_age_ms = answer->oldest_open_age_ms;
        }
    }
    if (--health->counting == 0 && !health->has_failed) {
        health->counts = health->next;
        health->counts_ms = clock_mono_ms();
        metrics_loop_ran(health->api->metrics, LABEL_LOOP_API, clock_wall_ms());
    }
}

static void on_beat(enum store_result result, bool yes, void *arg)
{
    (void)result; /* the API holds no lock: nothing follows from it here */
    (void)yes;
    (void)arg;
}

void health_refresh(struct health *health)
{
    struct api *api = health->api;

    if (!health->is_asking_facts) {
        health->is_asking_facts = true;
        store_facts(api->store, on_facts, health);
    }
    if (health->counting == 0 && store_is_up(api->store)) {
        health->next = (struct counts_answer){0};
        health->has_failed = false;
        health->counting = PARTITION_COUNT;
        for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
            store_counts(api->store, p, on_counts, health);
        }
    }
    store_beat(api->store, api->node, api->generation, on_beat, NULL);
}

static void on_timer(uv_timer_t *timer)
{
    health_refresh(timer->data);
}

int health_create(struct api *api, struct health **ret)
{
    struct health *health = calloc(1, sizeof(*health));

    if (!health) {
        return -ENOMEM;
    }
    health->api = api;
    uv_timer_init(api->loop, &health->timer);
    health->timer.data = health;
    uv_timer_start(&health->timer, on_timer, ASK_EVERY_MS, ASK_EVERY_MS);
    *ret = health;
    return 0;
}

bool health_is_known(const struct health *health)
{
    return health->facts_ms > 0 && health->counts_ms > 0;
}

void health_close(struct health *health)
{
    if (health) {
        uv_close((uv_handle_t *)&health->timer, NULL);
    }
}

void health_destroy(struct health **health)
{
    free(*health);
    *health = NULL;
}

/* ---- telling ---- */

static bool is_fresh(int64_t asked_ms)
{
    return asked_ms != 0 && clock_mono_ms() - asked_ms <= FRESH_MS;
}

const char *health_store_refusal(const struct health *health)
{
    if (!store_is_up(health->api->store)) {
        return "the store is away";
    }
    if (!is_fresh(health->facts_ms)) {
        return "the store has not told its state";
    }
    if (health->facts_result != STORE_OK) {
        return store_result_help(health->facts_result);
    }
    return store_facts_refusal(&health->facts, health->api->settings->durability);
}

const struct counts_answer *health_counts(const struct health *health)
{
    return is_fresh(health->counts_ms) ? &health->counts : NULL;
}
