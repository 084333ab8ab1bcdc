/* Liveness, readiness and metrics. */
#include "api/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/api.h"
#include "api/json_out.h"
#include "api/request.h"
#include "common/base/clock.h"
#include "common/base/settings.h"
#include "common/shm/exposition.h"
#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/store/scripts.h"
#include "common/store/store.h"

#define ASK_EVERY_MS   2000
#define FACTS_FRESH_MS 10000 /* older ones say nothing of now */
#define METRICS_MAX    (4U << 20)

struct health {
    struct api *api;
    uv_timer_t timer;
    bool is_asking_facts;
    struct server_facts facts;
    enum store_result facts_result;
    int64_t facts_ms;  /* monotonic; 0: none yet */
    uint32_t counting; /* answers still to come */
    struct counts_answer next, counts;
    bool has_counts;
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

    if (result == STORE_OK) {
        for (unsigned status = 0; status < STATUS_COUNT; status++) {
            health->next.by_status[status] += answer->by_status[status];
        }
        health->next.locked += answer->locked;
        if (answer->oldest_open_age_ms > health->next.oldest_open_age_ms) {
            health->next.oldest_open_age_ms = answer->oldest_open_age_ms;
        }
    }
    if (--health->counting == 0) {
        health->counts = health->next;
        health->has_counts = true;
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
    return health->facts_ms > 0 && health->has_counts;
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

/* ---- answering ---- */

void handle_healthz(struct api *api, struct request *request)
{
    (void)api;
    request_answer(request, 200, "application/json", span_of("{\"status\":\"alive\"}"));
}

/* Why this server is not ready: NULL if it is. */
static const char *not_ready(const struct api *api)
{
    const struct health *health = api->health;

    if (api->is_draining && !api->has_successor) {
        return "it is stopping";
    }
    if (!store_is_up(api->store)) {
        return "the store is away";
    }
    if (health->facts_ms == 0 || clock_mono_ms() - health->facts_ms > FACTS_FRESH_MS) {
        return "the store has not told its state";
    }
    if (health->facts_result != STORE_OK) {
        return store_result_help(health->facts_result);
    }
    return store_facts_refusal(&health->facts, api->settings->durability);
}

static void write_processes(const struct api *api, struct buf *out)
{
    static const char *const roles[] = {"none", "supervisor", "api", "worker"};
    static const char *const states[] = {"down", "starting", "ready", "draining"};

    json_open_member(out, "processes", '[');
    for (uint32_t slot = 0; slot < shm_slot_count(api->shm); slot++) {
        struct shm_process process;

        if (shm_process_read(api->shm, slot, &process) < 0 || process.role == SHM_ROLE_NONE) {
            continue;
        }
        json_open(out, '{');
        json_member_text(out, "role", span_of(roles[process.role]));
        json_member_i64(out, "slot", slot);
        json_member_text(out, "state", span_of(states[process.state]));
        json_close(out, '}');
        json_comma(out);
    }
    json_close(out, ']');
    json_comma(out);
}

void handle_readyz(struct api *api, struct request *request)
{
    const char *why_not = not_ready(api);
    struct buf *out = &request->out;

    if (why_not) {
        problem_open(PROBLEM_NOT_READY, span_of(why_not), out);
    } else {
        json_open(out, '{');
        json_member_text(out, "status", span_of("ready"));
    }
    json_member_text(out, "durability", span_of(api->durability));
    json_member_bool(out, "store", store_is_up(api->store));
    write_processes(api, out);
    json_close(out, '}');
    request_answer_out(request, why_not ? 503 : 200,
                       why_not ? PROBLEM_CONTENT_TYPE : "application/json");
    if (why_not) {
        request_answer_header(request, "Retry-After", "1");
    }
}

static int expose_table(const struct api *api, struct buf *out)
{
    const char *scripts[SCRIPT_COUNT];

    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        scripts[i] = store_scripts[i].name;
    }
    const struct exposition_names names = {
        .kinds = {api->kinds.names, api->kinds.count},
        .scripts = {scripts, SCRIPT_COUNT},
        .routes = {route_labels, ROUTE_COUNT},
    };

    return metrics_expose(api->shm, &names, out);
}

static int expose_counts(const struct health *health, struct buf *out)
{
    struct exposition_sample by_status[STATUS_COUNT];
    const struct exposition_sample age = {NULL, (double)health->counts.oldest_open_age_ms / 1000};

    for (unsigned status = 0; status < STATUS_COUNT; status++) {
        by_status[status] = (struct exposition_sample){
            entry_status_name((enum entry_status)status),
            (double)health->counts.by_status[status],
        };
    }
    int err = exposition_gauge(out, "entries", "Entries in the store by status.", "status",
                               by_status, STATUS_COUNT);

    return err == 0 ? exposition_gauge(
                          out, "oldest_nonterminal_age_seconds",
                          "Age of the oldest entry that is pending, delivering or verifying.", NULL,
                          &age, 1)
                    : err;
}

void handle_metrics(struct api *api, struct request *request)
{
    struct buf text;

    buf_init(&text, METRICS_MAX);
    int err = expose_table(api, &text);

    /* Without an answer of the store yet, no number is better than a wrong one. */
    if (err == 0 && api->health->has_counts) {
        err = expose_counts(api->health, &text);
    }
    if (err < 0) {
        request_problem(request, PROBLEM_INTERNAL, (struct span){0});
    } else {
        request_answer(request, 200, EXPOSITION_CONTENT_TYPE, (struct span){text.bytes, text.len});
    }
    buf_done(&text);
}

void handle_start_page(struct api *api, struct request *request)
{
    static const char page[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>outboxd</title>"
        "<h1>outboxd</h1><p>A durable outbox. <a href=\"/readyz\">readiness</a> · "
        "<a href=\"/metrics\">metrics</a></p></html>\n";

    (void)api;
    request_answer(request, 200, "text/html; charset=utf-8", span_of(page));
    request_answer_header(request, "Content-Security-Policy", "default-src 'none'");
    request_answer_header(request, "X-Content-Type-Options", "nosniff");
}
