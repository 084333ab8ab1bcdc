/* Lays out a frame: a title, rates and latencies, processes, deliveries in flight. Where the rows
 * do not suffice, both lists give way, and their titles say how much is shown. */
#include "api/ctl/top_frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/print.h"
#include "api/ctl/table.h"
#include "api/ctl/top_figures.h"
#include "api/ctl/top_sample.h"
#include "common/core/buf.h"
#include "common/core/span.h"

#define PART_MAX       ((size_t)64 * 1024 * 1024)
#define FIXED_ROWS     12 /* all but the rows of the two lists */
#define STALE_AFTER_MS 3000

struct frame {
    const struct top_view *view;
    struct buf *out;
    size_t rows; /* written */
};

/* A line, cut to the terminal. Nothing once the frame is full. */
static void add_line(struct frame *frame, enum style style, struct span line)
{
    const bool is_coloured = frame->view->is_coloured;

    if (frame->view->rows > 0 && frame->rows >= frame->view->rows) {
        return;
    }
    if (frame->view->columns > 0) {
        line.len = print_fit(line, frame->view->columns);
    }
    buf_append_str(frame->out, style_begin(style, is_coloured));
    buf_append(frame->out, line.ptr, line.len);
    buf_append_str(frame->out, style_end(style, is_coloured));
    buf_append_str(frame->out, "\n");
    frame->rows++;
}

/* The style of a table's row; row -1 is its titles. */
typedef enum style style_fn(const struct top_sample *sample, long row);

/* Takes the table. */
static int add_table(struct frame *frame, struct table *table, style_fn *style,
                     const struct top_sample *sample)
{
    const struct table_view view = {.columns = frame->view->columns};
    struct buf text;

    if (!table) {
        return -ENOMEM;
    }
    buf_init(&text, PART_MAX);
    const int err = table_print(table, &view, &text);

    if (err == 0) {
        const char *line = text.bytes;
        const char *end = line + text.len;

        for (long row = -1; line < end; row++) {
            const size_t len =
                (size_t)((const char *)memchr(line, '\n', (size_t)(end - line)) - line);

            add_line(frame, style(sample, row), (struct span){line, len});
            line += len + 1;
        }
    }
    buf_done(&text);
    table_destroy(&table);
    return err;
}

static enum style style_titles(const struct top_sample *sample, long row)
{
    (void)sample;
    return row < 0 ? STYLE_TITLE : STYLE_PLAIN;
}

/* ---- title, rates and latencies ---- */

static void add_title(struct frame *frame, const struct top_sample *sample,
                      const struct top_figures *figures)
{
    char up[PRINT_MAX] = "?";
    struct buf line;

    if (sample->uptime_ms >= 0) {
        print_age(sample->uptime_ms, up);
    }
    buf_init(&line, 8192);
    buf_appendf(&line, "outboxd  up %s  ", up);
    if (figures->is_since_start) {
        buf_append_str(&line, "since start  ");
    } else {
        buf_appendf(&line, "last %.1fs  ", figures->seconds);
    }
    buf_appendf(&line, "locks %" PRIu64 "  restarts %" PRIu64 "  ring drops %" PRIu64,
                figures->locks_held, figures->restarts, figures->ring_drops);
    for (size_t i = 0; i < CIRCUIT_STATE_COUNT; i++) {
        if (sample->circuits[i] > 0) {
            buf_appendf(&line, "  circuits %s %zu", circuit_state_name((enum circuit_state)i),
                        sample->circuits[i]);
        }
    }
    buf_appendf(&line, "  generation %" PRIx64 "  ", sample->generation);
    print_safe(&line, span_of(frame->view->state_dir));
    add_line(frame, STYLE_TITLE, (struct span){line.bytes, line.len});
    buf_done(&line);
}

static void add_quantiles(struct table *table, const struct top_quantiles *quantiles)
{
    char text[PRINT_MAX];

    print_latency(quantiles->p50, text);
    table_add_str(table, text);
    print_latency(quantiles->p99, text);
    table_add_str(table, text);
}

static void add_rate(struct table *table, double per_second)
{
    char text[PRINT_MAX];

    print_rate(per_second, text);
    table_add_str(table, text);
}

static void name_rate(struct buf *out, const char *name, double per_second)
{
    char text[PRINT_MAX];

    print_rate(per_second, text);
    buf_appendf(out, "%s%s %s", out->len > 0 ? "  " : "", name, text);
}

static int add_figures(struct frame *frame, const struct top_figures *figures)
{
    static const struct table_column columns[] = {
        {"", 0}, {"RATE", 1}, {"P50", 1}, {"P99", 1}, {"", 0},
    };
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));
    struct buf parts;

    if (!table) {
        return -ENOMEM;
    }
    buf_init(&parts, 4096);
    table_add_str(table, "accepts");
    add_rate(table, figures->accepts);
    add_quantiles(table, &figures->accept);
    name_rate(&parts, "duplicate", figures->duplicates);
    name_rate(&parts, "refused", figures->refused);
    table_add(table, (struct span){parts.bytes, parts.len});

    table_add_str(table, "dispatch");
    table_add_str(table, "");
    add_quantiles(table, &figures->dispatch);
    table_add_str(table, "");

    buf_reset(&parts);
    for (size_t i = 0; i < OUTCOME_COUNT; i++) {
        if (figures->outcomes[i] > 0) {
            name_rate(&parts, outcome_name((enum outcome)i), figures->outcomes[i]);
        }
    }
    table_add_str(table, "deliveries");
    add_rate(table, figures->deliveries);
    add_quantiles(table, &figures->delivery);
    table_add(table, (struct span){parts.bytes, parts.len});
    buf_done(&parts);
    return add_table(frame, table, style_titles, NULL);
}

/* ---- the two lists ---- */

static void add_list_title(struct frame *frame, const char *name, size_t shown, size_t count,
                           const char *order)
{
    char line[128];

    if (shown < count) {
        snprintf(line, sizeof(line), "%s (%zu of %zu%s)", name, shown, count, order);
    } else {
        snprintf(line, sizeof(line), "%s (%zu)", name, count);
    }
    add_line(frame, STYLE_PLAIN, (struct span){"", 0});
    add_line(frame, STYLE_TITLE, span_of(line));
}

static void add_age(struct table *table, int64_t ms)
{
    char text[PRINT_MAX] = "-";

    if (ms >= 0) {
        print_age(ms, text);
    }
    table_add_str(table, text);
}

static void add_number(struct table *table, int64_t number)
{
    char text[PRINT_MAX];

    snprintf(text, sizeof(text), "%" PRId64, number);
    table_add_str(table, text);
}

static enum style style_process(const struct top_sample *sample, long row)
{
    if (row < 0) {
        return STYLE_TITLE;
    }
    const struct top_process *process = &sample->processes[row];

    switch (process->state) {
    case SHM_PROCESS_DOWN:
    case SHM_PROCESS_WAITING:
    case SHM_PROCESS_FAILED:
        return STYLE_BAD;
    case SHM_PROCESS_STARTING:
    case SHM_PROCESS_DRAINING:
        return STYLE_CAREFUL;
    case SHM_PROCESS_READY:
        return process->heartbeat_age_ms > STALE_AFTER_MS ? STYLE_BAD
               : process->deaths >= SHM_LOOP_DEATHS       ? STYLE_CAREFUL
                                                          : STYLE_PLAIN;
    }
    return STYLE_PLAIN;
}

static void add_state(struct table *table, const struct top_process *process)
{
    char text[PRINT_MAX];

    if (process->deaths > 0) {
        snprintf(text, sizeof(text), "%s, died %" PRIu32 "x",
                 shm_process_state_name(process->state), process->deaths);
    } else {
        snprintf(text, sizeof(text), "%s", shm_process_state_name(process->state));
    }
    table_add_str(table, text);
}

static int add_processes(struct frame *frame, const struct top_sample *sample, size_t shown)
{
    static const struct table_column columns[] = {
        {"ROLE", 0}, {"SLOT", 1}, {"PID", 1}, {"STATE", 0}, {"UPTIME", 1}, {"HEARTBEAT", 1},
    };
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));

    add_list_title(frame, "PROCESSES", shown, sample->process_count, "");
    for (size_t i = 0; table && i < shown; i++) {
        const struct top_process *process = &sample->processes[i];

        table_add_str(table, shm_role_name(process->role));
        add_number(table, process->slot);
        if (process->pid > 0) {
            add_number(table, process->pid);
        } else {
            table_add_str(table, "-");
        }
        add_state(table, process);
        add_age(table, process->uptime_ms);
        add_age(table, process->heartbeat_age_ms);
    }
    return add_table(frame, table, style_process, sample);
}

static int add_flights(struct frame *frame, const struct top_sample *sample, size_t shown)
{
    static const struct table_column columns[] = {
        {"WORKER", 1}, {"WORKSPACE", 0}, {"SESSION", 0}, {"WHAT", 0}, {"AGE", 1},
    };
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));

    add_list_title(frame, "IN FLIGHT", shown, sample->flight_count, ", oldest first");
    for (size_t i = 0; table && i < shown; i++) {
        const struct top_flight *flight = &sample->flights[i];

        add_number(table, flight->slot);
        table_add_str(table, flight->workspace);
        table_add_str(table, flight->session);
        table_add_str(table, shm_lock_activity_name(flight->activity));
        add_age(table, flight->age_ms);
    }
    return add_table(frame, table, style_titles, sample);
}

/* How the rows that are left are shared: deliveries get half of them if they need it, and what the
 * processes leave. */
static void share_rows(const struct top_sample *sample, size_t rows, size_t *ret_processes,
                       size_t *ret_flights)
{
    const size_t left = rows > FIXED_ROWS ? rows - FIXED_ROWS : 0;
    size_t processes = sample->process_count, flights = sample->flight_count;

    if (rows > 0 && processes + flights > left) {
        const size_t reserved = flights < left / 2 ? flights : left / 2;

        processes = processes < left - reserved ? processes : left - reserved;
        flights = flights < left - processes ? flights : left - processes;
    }
    *ret_processes = processes;
    *ret_flights = flights;
}

int top_frame_text(const struct top_sample *sample, const struct top_figures *figures,
                   const struct top_view *view, struct buf *out)
{
    struct frame frame = {.view = view, .out = out};
    size_t processes, flights;
    int err;

    share_rows(sample, view->rows, &processes, &flights);
    add_title(&frame, sample, figures);
    add_line(&frame, STYLE_PLAIN, (struct span){"", 0});
    err = add_figures(&frame, figures);
    err = err < 0 ? err : add_processes(&frame, sample, processes);
    err = err < 0 ? err : add_flights(&frame, sample, flights);
    return err < 0 ? err : out->failed ? -ENOBUFS : 0;
}
