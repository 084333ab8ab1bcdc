/* A frame as JSON, for scripts: the same figures as the text, in seconds and per second. What is
 * unknown is left out. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "api/ctl/top_figures.h"
#include "api/ctl/top_frame.h"
#include "api/ctl/top_sample.h"
#include "common/base/err.h"
#include "common/core/buf.h"

static void set_seconds(json_t *object, const char *name, int64_t ms)
{
    if (ms >= 0) {
        json_object_set_new(object, name, json_real((double)ms / 1000));
    }
}

static void set_text(json_t *object, const char *name, const char *text)
{
    json_object_set_new(object, name, json_string(text));
}

static void set_integer(json_t *object, const char *name, uint64_t value)
{
    /* JSON readers have 63 bits at most; more is garbage in shared memory. */
    json_object_set_new(object, name, json_integer((json_int_t)(value & INT64_MAX)));
}

static json_t *processes_of(const struct top_sample *sample)
{
    json_t *list = json_array();

    for (size_t i = 0; i < sample->process_count; i++) {
        const struct top_process *process = &sample->processes[i];
        json_t *one = json_object();

        set_text(one, "role", shm_role_name(process->role));
        set_integer(one, "slot", process->slot);
        if (process->pid > 0) {
            set_integer(one, "pid", (uint64_t)process->pid);
        }
        set_text(one, "state", shm_process_state_name(process->state));
        if (process->deaths > 0) {
            set_integer(one, "deaths_in_a_row", process->deaths);
        }
        set_seconds(one, "uptime_seconds", process->uptime_ms);
        set_seconds(one, "heartbeat_age_seconds", process->heartbeat_age_ms);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *flights_of(const struct top_sample *sample)
{
    json_t *list = json_array();

    for (size_t i = 0; i < sample->flight_count; i++) {
        const struct top_flight *flight = &sample->flights[i];
        json_t *one = json_object();

        set_integer(one, "worker", flight->slot);
        if (flight->pid > 0) {
            set_integer(one, "pid", (uint64_t)flight->pid);
        }
        set_text(one, "workspace", flight->workspace);
        set_text(one, "session", flight->session);
        set_text(one, "what", shm_lock_activity_name(flight->activity));
        set_seconds(one, "age_seconds", flight->age_ms);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *circuits_of(const struct top_sample *sample)
{
    json_t *circuits = json_object();

    for (size_t i = 0; i < CIRCUIT_STATE_COUNT; i++) {
        if (i != CIRCUIT_CLOSED) {
            set_integer(circuits, circuit_state_name((enum circuit_state)i), sample->circuits[i]);
        }
    }
    return circuits;
}

static json_t *rates_of(const struct top_figures *figures)
{
    json_t *rates = json_object(), *outcomes = json_object();

    json_object_set_new(rates, "over_seconds", json_real(figures->seconds));
    json_object_set_new(rates, "accepts", json_real(figures->accepts));
    json_object_set_new(rates, "duplicates", json_real(figures->duplicates));
    json_object_set_new(rates, "refused", json_real(figures->refused));
    json_object_set_new(rates, "deliveries", json_real(figures->deliveries));
    for (size_t i = 0; i < OUTCOME_COUNT; i++) {
        json_object_set_new(outcomes, outcome_name((enum outcome)i),
                            json_real(figures->outcomes[i]));
    }
    json_object_set_new(rates, "outcomes", outcomes);
    return rates;
}

static void set_quantiles(json_t *object, const char *name, const struct top_quantiles *quantiles)
{
    json_t *one = json_object();

    if (quantiles->p50 >= 0) {
        json_object_set_new(one, "p50_seconds", json_real(quantiles->p50));
        json_object_set_new(one, "p99_seconds", json_real(quantiles->p99));
    }
    json_object_set_new(object, name, one);
}

static json_t *latencies_of(const struct top_figures *figures)
{
    json_t *latencies = json_object();

    set_quantiles(latencies, "accept", &figures->accept);
    set_quantiles(latencies, "dispatch", &figures->dispatch);
    set_quantiles(latencies, "delivery", &figures->delivery);
    return latencies;
}

int top_frame_json(const struct top_sample *sample, const struct top_figures *figures,
                   struct buf *out)
{
    char generation[17];
    json_t *root = json_object();

    snprintf(generation, sizeof(generation), "%" PRIx64, sample->generation);
    set_text(root, "generation", generation);
    set_seconds(root, "uptime_seconds", sample->uptime_ms);
    json_object_set_new(root, "processes", processes_of(sample));
    json_object_set_new(root, "in_flight", flights_of(sample));
    json_object_set_new(root, "circuits", circuits_of(sample));
    json_object_set_new(root, "rates", rates_of(figures));
    json_object_set_new(root, "latencies", latencies_of(figures));
    set_integer(root, "locks_held", figures->locks_held);
    set_integer(root, "restarts", figures->restarts);
    set_integer(root, "ring_drops", figures->ring_drops);

    AUTO_FREE char *text = json_dumps(root, JSON_COMPACT);

    json_decref(root);
    if (!text) {
        return -ENOMEM;
    }
    buf_append_str(out, text);
    return buf_append_str(out, "\n");
}
