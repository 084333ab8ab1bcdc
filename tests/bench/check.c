/* Compares a load's log with the target's: lost, doubled, out of order, overlapping, latencies,
 * rates. Prints one line of key=value; exits 1 if something accepted was lost, confirmed twice or
 * out of order.
 *
 * Order: when a's answer came before b's request was sent, in one session, a's successful POST must
 * start before b's. Overlap: first POSTed while an earlier one of that session was not confirmed
 * yet. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/check_logs.h"
#include "tests/bench/quantile.h"

struct totals {
    uint64_t accepted, delivered, lost, posted_twice, confirmed_twice, not_answered;
    uint64_t out_of_order, overlapping;
    uint64_t first_send_ns;
};

/* Messages that were accepted and confirmed. */
struct settled {
    struct message **items; /* owned */
    uint64_t *wait_ns;      /* owned: from the client's request to the target's */
    size_t count;
};

static int by_confirmation(const void *a, const void *b)
{
    const struct message *x = *(struct message *const *)a, *y = *(struct message *const *)b;

    if (x->session != y->session) {
        return x->session < y->session ? -1 : 1;
    }
    return x->confirmed_ns < y->confirmed_ns ? -1 : x->confirmed_ns > y->confirmed_ns;
}

static int by_first_post(const void *a, const void *b)
{
    const struct message *x = *(struct message *const *)a, *y = *(struct message *const *)b;

    if (x->session != y->session) {
        return x->session < y->session ? -1 : 1;
    }
    return x->first_post_ns < y->first_post_ns ? -1 : x->first_post_ns > y->first_post_ns;
}

static void count_message(struct message *message, struct totals *totals, struct settled *settled)
{
    bool is_accepted = message->status >= 200 && message->status < 300;

    totals->accepted += is_accepted;
    totals->delivered += message->confirmed > 0;
    totals->lost += is_accepted && message->confirmed == 0;
    totals->not_answered += !is_accepted && message->confirmed > 0;
    totals->posted_twice += message->posts > 1;
    totals->confirmed_twice += message->confirmed > 1;
    if (totals->first_send_ns == 0 || message->send_ns < totals->first_send_ns) {
        totals->first_send_ns = message->send_ns;
    }
    if (is_accepted && message->confirmed > 0) {
        settled->wait_ns[settled->count] = message->first_post_ns > message->send_ns
                                               ? message->first_post_ns - message->send_ns
                                               : 0;
        settled->items[settled->count++] = message;
    }
}

static void count_disorder(struct settled *settled, struct totals *totals)
{
    uint64_t newest_send = 0, latest_end = 0;

    qsort(settled->items, settled->count, sizeof(struct message *), by_confirmation);
    for (size_t i = 0; i < settled->count; i++) {
        const struct message *m = settled->items[i];

        if (i == 0 || m->session != settled->items[i - 1]->session) {
            newest_send = 0;
        }
        totals->out_of_order += newest_send > m->answer_ns;
        newest_send = m->send_ns > newest_send ? m->send_ns : newest_send;
    }
    qsort(settled->items, settled->count, sizeof(struct message *), by_first_post);
    for (size_t i = 0; i < settled->count; i++) {
        const struct message *m = settled->items[i];

        if (i == 0 || m->session != settled->items[i - 1]->session) {
            latest_end = 0;
        }
        totals->overlapping += latest_end > m->first_post_ns;
        latest_end = m->confirmed_at_ns > latest_end ? m->confirmed_at_ns : latest_end;
    }
}

static double per_second(uint64_t count, uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)count / ((double)(to_ns - from_ns) / 1e9) : 0;
}

static void print(const struct message_table *table, const struct totals *t,
                  const struct settled *settled)
{
    printf("accepted=%" PRIu64 " delivered=%" PRIu64 " lost=%" PRIu64 " posted_twice=%" PRIu64
           " confirmed_twice=%" PRIu64 " delivered_unanswered=%" PRIu64 " unknown=%" PRIu64
           " out_of_order=%" PRIu64 " overlapping=%" PRIu64,
           t->accepted, t->delivered, t->lost, t->posted_twice, t->confirmed_twice, t->not_answered,
           table->unknown_posts, t->out_of_order, t->overlapping);
    printf(" deliveries_per_s=%.0f end_to_end_per_s=%.0f",
           per_second(table->posts, table->first_post_ns, table->last_post_ns),
           per_second(t->delivered, t->first_send_ns, table->last_post_ns));
    printf(" dispatch_p50_ms=%.3f dispatch_p99_ms=%.3f dispatch_max_ms=%.3f\n",
           quantile_ms(settled->wait_ns, settled->count, 0.5),
           quantile_ms(settled->wait_ns, settled->count, 0.99),
           quantile_ms(settled->wait_ns, settled->count, 1));
}

int main(int argc, char **argv)
{
    struct message_table table;
    struct totals totals = {0};
    struct settled settled = {0};

    if (argc != 3) {
        fprintf(stderr, "usage: bench-check LOAD_LOG SINK_LOG\n");
        return 2;
    }
    int err = check_logs_read(argv[1], argv[2], &table);

    if (err < 0) {
        fprintf(stderr, "check: cannot read the logs: %s\n", strerror(-err));
        return 2;
    }
    settled.items = calloc(table.count + 1, sizeof(*settled.items));
    settled.wait_ns = calloc(table.count + 1, sizeof(*settled.wait_ns));
    if (!settled.items || !settled.wait_ns) {
        abort();
    }
    for (size_t i = 0; i < table.count; i++) {
        count_message(&table.messages[i], &totals, &settled);
    }
    quantile_sort(settled.wait_ns, settled.count);
    count_disorder(&settled, &totals);
    print(&table, &totals, &settled);
    bool is_good = totals.lost == 0 && totals.confirmed_twice == 0 && totals.out_of_order == 0;

    free(settled.items);
    free(settled.wait_ns);
    check_logs_done(&table);
    return is_good ? 0 : 1;
}
