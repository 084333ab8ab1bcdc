/* What came of a load: one line of figures, and the log. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/bench/load.h"
#include "tests/bench/quantile.h"

static bool is_accepted(const struct load_item *item)
{
    return item->status >= 200 && item->status < 300;
}

/* Of one core, in percent. */
static double own_cpu(double seconds)
{
    struct rusage usage;

    if (seconds <= 0 || getrusage(RUSAGE_SELF, &usage) < 0) {
        return 0;
    }
    double used = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;

    return 100 * used / seconds;
}

void load_report_print(const struct load_options *options, const struct load_result *result)
{
    uint64_t *took = calloc(result->count + 1, sizeof(*took)), last_ns = 0;
    size_t accepted = 0, unanswered = 0;

    if (!took) {
        abort();
    }
    for (size_t i = 0; i < result->count; i++) {
        const struct load_item *item = &result->items[i];

        unanswered += item->status == 0;
        if (is_accepted(item)) {
            took[accepted++] = item->answer_ns - (options->rate > 0 ? item->due_ns : item->send_ns);
            last_ns = item->answer_ns > last_ns ? item->answer_ns : last_ns;
        }
    }
    quantile_sort(took, accepted);
    double seconds = last_ns > result->start_ns ? (double)(last_ns - result->start_ns) / 1e9 : 0;

    printf("issued=%zu accepted=%zu unanswered=%zu retries=%" PRIu64 " broken_connections=%" PRIu64
           " seconds=%.3f accepts_per_s=%.0f p50_ms=%.3f p99_ms=%.3f max_ms=%.3f cpu.load=%.0f "
           "statuses=",
           result->count, accepted, unanswered, result->retries, result->broken_connections,
           seconds, seconds > 0 ? (double)accepted / seconds : 0, quantile_ms(took, accepted, 0.5),
           quantile_ms(took, accepted, 0.99), quantile_ms(took, accepted, 1), own_cpu(seconds));
    for (int i = 0; i < LOAD_STATUS_MAX; i++) {
        if (result->statuses[i] > 0) {
            printf("%d:%" PRIu64 ",", i, result->statuses[i]);
        }
    }
    printf("\n");
    free(took);
}

int load_report_write(const struct load_options *options, const struct load_result *result)
{
    FILE *file = fopen(options->log_path, "w");

    if (!file) {
        return -errno;
    }
    for (size_t i = 0; i < result->count; i++) {
        const struct load_item *item = &result->items[i];
        char id[64];

        load_item_id(options, item, id, sizeof(id));
        fprintf(file, "%s %u %u %d %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", id, item->session,
                item->seq, item->status, item->attempts, item->due_ns, item->send_ns,
                item->answer_ns);
    }
    return fclose(file) == 0 ? 0 : -errno;
}
