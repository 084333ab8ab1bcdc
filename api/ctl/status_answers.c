/* One state out of two answers, and a screen out of it. */
#include "api/ctl/status_answers.h"

#include <stdio.h>

#include "api/ctl/answers.h"
#include "api/ctl/metrics_text.h"
#include "api/ctl/print.h"
#include "api/ctl/style.h"
#include "api/ctl/table.h"
#include "common/core/buf.h"

/* ---- putting it together ---- */

static void add_text(json_t *state, const char *name, struct span text)
{
    if (text.len > 0) {
        json_object_set_new(state, name, json_stringn(text.ptr, text.len));
    }
}

static json_t *number_of(double value)
{
    return value >= 0 && value < 9e15 && value == (double)(json_int_t)value
               ? json_integer((json_int_t)value)
               : json_real(value);
}

static void add_circuits(json_t *state, const struct metrics_sample *sample)
{
    json_t *circuits = json_object_get(state, "circuits");
    const struct span name = metrics_label(sample, "state");

    if (!circuits) {
        circuits = json_object();
        json_object_set_new(state, "circuits", circuits);
    }
    json_object_setn_new(circuits, name.ptr, name.len, number_of(sample->value));
}

static void add_sample(json_t *state, json_t *entries, const struct metrics_sample *sample,
                       double *restarts)
{
    if (span_equal(sample->name, span_of("outbox_entries"))) {
        const struct span status = metrics_label(sample, "status");

        json_object_setn_new(entries, status.ptr, status.len, number_of(sample->value));
    } else if (span_equal(sample->name, span_of("outbox_oldest_nonterminal_age_seconds"))) {
        json_object_set_new(state, "oldestOpenAge", number_of(sample->value));
    } else if (span_equal(sample->name, span_of("outbox_target_circuits"))) {
        add_circuits(state, sample);
    } else if (span_equal(sample->name, span_of("outbox_build_info"))) {
        add_text(state, "version", metrics_label(sample, "version"));
    } else if (span_equal(sample->name, span_of("outbox_process_restarts_total"))) {
        *restarts = (*restarts > 0 ? *restarts : 0) + sample->value;
    }
}

json_t *status_make(const json_t *ready, struct span metrics)
{
    json_t *state = json_object(), *entries = json_object();
    const char *status = answer_text(ready, "status");
    /* Degraded: it accepts all the same, though processes of it keep dying. */
    const bool is_ready = strcmp(status, "ready") == 0 || strcmp(status, "degraded") == 0;
    struct metrics_sample sample;
    double restarts = -1;

    json_object_set_new(state, "ready", json_boolean(is_ready));
    if (!is_ready) {
        add_text(state, "why", span_of(answer_text(ready, "detail")));
    }
    if (json_object_get(ready, "degraded")) {
        json_object_set(state, "degraded", json_object_get(ready, "degraded"));
    }
    while (metrics_text_next(&metrics, &sample)) {
        add_sample(state, entries, &sample, &restarts);
    }
    add_text(state, "durability", span_of(answer_text(ready, "durability")));
    json_object_set_new(state, "store",
                        json_boolean(json_is_true(json_object_get(ready, "store"))));
    if (json_object_size(entries) > 0) {
        json_object_set(state, "entries", entries);
    }
    json_decref(entries);
    json_object_set(state, "processes", json_object_get(ready, "processes"));
    if (restarts >= 0) {
        json_object_set_new(state, "restarts", number_of(restarts));
    }
    return state;
}

/* ---- the screen ---- */

static void add_degraded(const json_t *state, const struct answer_view *view, struct buf *out)
{
    const json_t *why;
    size_t i;

    json_array_foreach(json_object_get(state, "degraded"), i, why)
    {
        style_add(out, STYLE_BAD, view->is_coloured, span_of("degraded"));
        (void)buf_append_str(out, ": ");
        print_safe(out, span_of(json_string_value(why) ? json_string_value(why) : "?"));
        (void)buf_append_str(out, "\n");
    }
}

static void add_head(const json_t *state, const char *server, const struct answer_view *view,
                     struct buf *out)
{
    const bool is_ready = json_is_true(json_object_get(state, "ready"));

    (void)buf_append_str(out, "outboxd ");
    print_safe(out, span_of(answer_text(state, "version")));
    (void)buf_append_str(out, answer_text(state, "version")[0] ? " at " : "at ");
    print_safe(out, span_of(server));
    (void)buf_append_str(out, ": ");
    style_add(out, is_ready ? STYLE_GOOD : STYLE_BAD, view->is_coloured,
              span_of(is_ready ? "ready" : "not ready"));
    if (!is_ready) {
        (void)buf_append_str(out, ", ");
        print_safe(out, span_of(answer_text(state, "why")));
    }
    (void)buf_append_str(out, "\n");
    add_degraded(state, view, out);
    (void)buf_append_str(out, "store: ");
    (void)buf_append_str(out, json_is_true(json_object_get(state, "store")) ? "reachable" : "away");
    (void)buf_append_str(out, "; a 202 is worth: ");
    print_safe(out, span_of(answer_text(state, "durability")));
    (void)buf_append_str(out, "\n");
}

static void add_entries(const json_t *state, const struct answer_view *view, struct buf *out)
{
    const json_t *entries = json_object_get(state, "entries"), *count;
    const json_t *oldest = json_object_get(state, "oldestOpenAge");
    const char *status;
    char age[PRINT_MAX];
    bool is_first = true;

    if (!entries) {
        (void)buf_append_str(out, "entries: not known yet\n");
        return;
    }
    (void)buf_append_str(out, "entries:");
    json_object_foreach((json_t *)(uintptr_t)entries, status, count)
    {
        const bool is_any = json_number_value(count) > 0;

        (void)buf_append_str(out, is_first ? " " : "  ");
        is_first = false;
        style_add(out, is_any ? style_of_status(span_of(status)) : STYLE_FAINT, view->is_coloured,
                  span_of(status));
        (void)buf_appendf(out, " %.0f", json_number_value(count));
    }
    if (json_number_value(oldest) > 0) {
        print_age((int64_t)(json_number_value(oldest) * 1000), age);
        (void)buf_appendf(out, "  oldest %s", age);
    }
    (void)buf_append_str(out, "\n");
}

/* Nothing while every target is asked. */
static void add_resting_targets(const json_t *state, const struct answer_view *view,
                                struct buf *out)
{
    const json_t *count;
    const char *name;
    double resting = 0;

    json_object_foreach(json_object_get(state, "circuits"), name, count)
    {
        resting += json_number_value(count);
    }
    if (resting > 0) {
        style_add(out, STYLE_BAD, view->is_coloured, span_of("targets that do not answer"));
        (void)buf_appendf(out, ": %.0f, asked again later (see the log)\n", resting);
    }
}

static enum style style_of_state(const char *state)
{
    return strcmp(state, "ready") == 0                                        ? STYLE_PLAIN
           : strcmp(state, "starting") == 0 || strcmp(state, "draining") == 0 ? STYLE_CAREFUL
                                                                              : STYLE_BAD;
}

/* "waiting, died 3x (signal), next start in 2.0s" */
static void add_state(struct table *table, const json_t *process)
{
    const json_t *deaths = json_object_get(process, "deathsInARow");
    const json_t *next = json_object_get(process, "nextStartIn");
    const char *state = answer_text(process, "state");
    char age[PRINT_MAX];
    struct buf text;

    buf_init(&text, 1024);
    (void)buf_append_str(&text, state);
    if (json_number_value(deaths) > 0) {
        (void)buf_appendf(&text, ", died %.0fx (%s)", json_number_value(deaths),
                          answer_text(process, "lastDeath"));
    }
    if (json_is_number(next)) {
        print_age((int64_t)(json_number_value(next) * 1000), age);
        (void)buf_appendf(&text, ", next start in %s", age);
    }
    table_add_styled(table, style_of_state(state), (struct span){text.bytes, text.len});
    buf_done(&text);
}

static void add_processes(const json_t *state, const struct answer_view *view, struct buf *out)
{
    static const struct table_column columns[] = {{"ROLE", 0}, {"SLOT", 1}, {"STATE", 0}};
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));
    const json_t *process;
    size_t i;

    if (!table) {
        return;
    }
    json_array_foreach(json_object_get(state, "processes"), i, process)
    {
        char slot[PRINT_MAX];

        snprintf(slot, sizeof(slot), "%.0f", json_number_value(json_object_get(process, "slot")));
        table_add_str(table, answer_text(process, "role"));
        table_add_str(table, slot);
        add_state(table, process);
    }
    (void)buf_append_str(out, "\n");
    (void)table_print(table, &(struct table_view){.is_coloured = view->is_coloured}, out);
    table_destroy(&table);
}

void status_print(const json_t *state, const char *server, const struct answer_view *view,
                  struct buf *out)
{
    const json_t *restarts = json_object_get(state, "restarts");
    const json_t *errors = json_object_get(json_object_get(state, "entries"), "error");

    add_head(state, server, view, out);
    add_entries(state, view, out);
    add_resting_targets(state, view, out);
    add_processes(state, view, out);
    if (json_number_value(restarts) > 0) {
        (void)buf_appendf(out, "restarts of processes since the start: %.0f\n",
                          json_number_value(restarts));
    }
    if (json_number_value(errors) > 0) {
        (void)buf_append_str(out, "\nFailed entries wait for you: `outboxctl workspaces` tells "
                                  "where, `outboxctl list WORKSPACE --status error` which.\n");
    }
}
