/* /metrics: the counters of all processes, and what the API knows of the store and of itself. */
#include <assert.h>
#include <string.h>

#include "api/api.h"
#include "api/health.h"
#include "api/request.h"
#include "api/server.h"
#include "common/base/clock.h"
#include "common/base/settings.h"
#include "common/shm/exposition.h"
#include "common/shm/target_table.h"
#include "common/store/scripts.h"
#include "common/store/store.h"

#define METRICS_MAX (4U << 20)

static_assert(ROUTE_COUNT <= LABEL_ROUTE_MAX, "a place for each route");

static int expose_processes(const struct api *api, struct buf *out)
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

static int expose_value(enum scraped gauge, double value, struct buf *out)
{
    const struct exposition_sample sample = {.value = value};

    return exposition_gauge(out, gauge, &sample, 1);
}

static int expose_counts(const struct counts_answer *counts, struct buf *out)
{
    struct exposition_sample by_status[STATUS_COUNT];

    for (unsigned status = 0; status < STATUS_COUNT; status++) {
        by_status[status] = (struct exposition_sample){
            .labels = {entry_status_name((enum entry_status)status)},
            .value = (double)counts->by_status[status],
        };
    }
    const int err = exposition_gauge(out, SCRAPED_entries, by_status, STATUS_COUNT);

    return err < 0 ? err
                   : expose_value(SCRAPED_oldest_nonterminal_age_seconds,
                                  (double)counts->oldest_open_age_ms / 1000, out);
}

/* Targets are unbounded, so they are counted, not named; but for the one that is configured. */
static int expose_circuits(const struct api *api, struct buf *out)
{
    const char *url = api->settings->target_url;
    const int64_t now_ns = clock_mono_ns();
    size_t counts[CIRCUIT_STATE_COUNT];

    target_table_count(api->shm, now_ns, counts);
    const struct exposition_sample by_state[] = {
        {.labels = {circuit_state_name(CIRCUIT_OPEN)}, .value = (double)counts[CIRCUIT_OPEN]},
        {.labels = {circuit_state_name(CIRCUIT_HALF_OPEN)},
         .value = (double)counts[CIRCUIT_HALF_OPEN]},
    };
    const int err = exposition_gauge(out, SCRAPED_target_circuits, by_state, 2);

    if (err < 0 || !url || strchr(url, '{')) {
        return err;
    }
    return expose_value(SCRAPED_default_target_circuit_open,
                        target_table_state(api->shm, target_table_key(api->shm, url), now_ns) !=
                            CIRCUIT_CLOSED,
                        out);
}

static int expose(const struct api *api, struct buf *out)
{
    /* Without an answer of the store no number is better than a wrong one. */
    const struct counts_answer *counts = health_counts(api->health);
    int err = expose_processes(api, out);

    err = err < 0 || !counts ? err : expose_counts(counts, out);
    err = err < 0 ? err
                  : expose_value(SCRAPED_store_up, health_store_refusal(api->health) ? 0 : 1, out);
    err = err < 0 ? err : expose_circuits(api, out);
    err = err < 0
              ? err
              : expose_value(SCRAPED_http_connections, server_connection_count(api->server), out);
    return err < 0 ? err
                   : expose_value(SCRAPED_http_connections_limit,
                                  api->settings->http_max_connections, out);
}

void handle_metrics(struct api *api, struct request *request)
{
    struct buf text;

    buf_init(&text, METRICS_MAX);
    if (expose(api, &text) < 0) {
        request_problem(request, PROBLEM_INTERNAL, (struct span){0});
    } else {
        request_answer(request, 200, EXPOSITION_CONTENT_TYPE, (struct span){text.bytes, text.len});
    }
    buf_done(&text);
}
