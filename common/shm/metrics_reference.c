/* The reference page of the metrics, from their table: `metrics-reference` prints Markdown,
 * `metrics-reference --man VERSION` the man page outboxd-metrics(7). Runs while outboxd is built,
 * is not installed. */
#include <stdio.h>
#include <string.h>

#include "common/core/buf.h"
#include "common/shm/metrics.h"

#define TEXT_MAX (64U << 10)

/* One metric, as both pages tell it. */
struct reference {
    const char *name; /* without prefix */
    const char *type;
    const char *help;
    const char *keys[2];
    struct buf values[2]; /* empty: not told */
    const struct metrics_buckets *buckets;
};

/* ---- from the table ---- */

static void tell_values(const struct metrics_label_dim *dim, struct buf *out)
{
    switch (dim->source) {
    case LABEL_NAMES_FIXED:
        for (size_t i = 0; dim->names && i < dim->count; i++) {
            (void)buf_appendf(out, "%s%s", i > 0 ? ", " : "", dim->names[i]);
        }
        return;
    case LABEL_NAMES_KIND:
        (void)buf_append_str(out, "the names of the configured kinds, other");
        return;
    case LABEL_NAMES_SCRIPT:
        (void)buf_append_str(out, "what the store is asked for: accept, claim, finish and so on");
        return;
    case LABEL_NAMES_ROUTE:
        (void)buf_append_str(out, "what the API is asked for: accept, list, readyz and so on");
        return;
    }
}

static void reference_of_metric(enum metric metric, struct reference *ret)
{
    static const char *const types[] = {
        [METRIC_TYPE_COUNTER] = "counter",
        [METRIC_TYPE_GAUGE_SUM] = "gauge",
        [METRIC_TYPE_GAUGE_MAX] = "gauge",
        [METRIC_TYPE_HISTOGRAM] = "histogram",
    };
    const struct metrics_desc *desc = metrics_desc(metric);

    *ret = (struct reference){
        .name = desc->name,
        .type = types[desc->type],
        .help = desc->help,
        .buckets = desc->buckets,
    };
    for (size_t i = 0; i < 2; i++) {
        ret->keys[i] = desc->labels->dims[i].key;
        buf_init(&ret->values[i], TEXT_MAX);
        if (ret->keys[i]) {
            tell_values(&desc->labels->dims[i], &ret->values[i]);
        }
    }
}

static void reference_of_scraped(enum scraped scraped, struct reference *ret)
{
    const struct scraped_desc *desc = scraped_desc(scraped);

    *ret = (struct reference){
        .name = desc->name,
        .type = "gauge",
        .help = desc->help,
        .keys = {desc->keys[0], desc->keys[1]},
    };
    for (size_t i = 0; i < 2; i++) {
        buf_init(&ret->values[i], TEXT_MAX);
    }
}

typedef void reference_printer(const struct reference *reference);

static void print_all(reference_printer *print)
{
    struct reference reference;

    for (int i = 0; i < METRIC_COUNT + SCRAPED_COUNT; i++) {
        if (i < METRIC_COUNT) {
            reference_of_metric((enum metric)i, &reference);
        } else {
            reference_of_scraped((enum scraped)(i - METRIC_COUNT), &reference);
        }
        print(&reference);
        buf_done(&reference.values[0]);
        buf_done(&reference.values[1]);
    }
}

/* ---- Markdown ---- */

static void print_markdown_row(const struct reference *reference)
{
    printf("| `outbox_%s` | %s | ", reference->name, reference->type);
    for (size_t i = 0; i < 2 && reference->keys[i]; i++) {
        printf("%s`%s`", i > 0 ? ", " : "", reference->keys[i]);
        if (reference->values[i].len > 0) {
            printf(" (%s)", reference->values[i].bytes);
        }
    }
    printf(" | %s |\n", reference->help);
}

static void print_markdown(void)
{
    printf("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n");
    print_all(print_markdown_row);
}

/* ---- the man page ---- */

/* Text within a line of a page: a backslash and a minus mean something else there. */
static void print_roff(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\') {
            (void)fputs("\\e", stdout);
        } else if (*text == '-') {
            (void)fputs("\\-", stdout);
        } else {
            (void)putchar(*text);
        }
    }
}

static void print_man_entry(const struct reference *reference)
{
    printf(".TP\n.B outbox_%s\n", reference->name);
    /* Begins with a letter, so it is no request. */
    print_roff(reference->help);
    printf("\nA %s", reference->type);
    if (reference->buckets) {
        printf(" with buckets up to %s seconds",
               reference->buckets->texts[reference->buckets->count - 2]);
    }
    printf(".\n");
    for (size_t i = 0; i < 2 && reference->keys[i]; i++) {
        printf(".RS\n.IP \\(bu 2\n.I %s", reference->keys[i]);
        if (reference->values[i].len > 0) {
            printf("\n(");
            print_roff(reference->values[i].bytes);
            printf(")");
        }
        printf("\n.RE\n");
    }
}

static void print_man(const char *version)
{
    printf(".TH OUTBOXD\\-METRICS 7 \"\" \"outboxd %s\" \"outboxd\"\n", version);
    printf(".SH NAME\noutboxd\\-metrics \\- what outboxd tells Prometheus\n");
    printf(".SH DESCRIPTION\n"
           ".BR outboxd (8)\nanswers\n.B GET /metrics\nin the text format of Prometheus.\n"
           "Counters add up what all processes of a supervisor have done: they never go backwards "
           "while a\nprocess is started again, reloaded or upgraded, and begin anew with the next "
           "supervisor.\n"
           "Each process counts for itself in shared memory, so that a scrape costs the others "
           "nothing.\n"
           "Histograms are in seconds.\n"
           "A series of a counter with known label values is there from the start, at 0;\n"
           ".BR outbox_http_requests_total ,\n.B outbox_loop_last_run_timestamp_seconds\n"
           "and the label value\n.I other\nappear once they have something to tell.\n");
    printf(".SH METRICS\n");
    print_all(print_man_entry);
    printf(".SH FILES\nRecording and alert rules, a scrape configuration and a Grafana dashboard "
           "come with outboxd\n(deploy/prometheus and deploy/grafana in its source).\n"
           ".SH SEE ALSO\n.BR outboxd (8),\n.BR outboxd.yaml (5)\n");
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        print_markdown();
    } else if (argc == 3 && strcmp(argv[1], "--man") == 0) {
        print_man(argv[2]);
    } else {
        (void)fprintf(stderr, "usage: metrics-reference [--man VERSION]\n");
        return 2;
    }
    return ferror(stdout) || fclose(stdout) != 0 ? 1 : 0;
}
