/* Filling the store by the calls that the daemon makes, see the header: accept, claim, settle. */
#include "tests/bench/claim_fill.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_store.h"

#define NOT_DUE_MS         3600000 /* longer than any run */
#define OTHERS_PER_WS      10
#define WORKSPACE_NAME_MAX 32
#define MESSAGE            span_of("a message that waits")

/* Names of other workspaces that fall into the same partition: "bench.K" for the K that do. */
static void next_workspace(char *name, size_t cap, unsigned *k)
{
    do {
        snprintf(name, cap, "bench.%u", (*k)++);
    } while (partition_of(name, strlen(name)) != CLAIM_PARTITION);
}

static unsigned own_sessions(unsigned sessions)
{
    return (sessions + 1) / 2;
}

static void accept_many(struct bench_store *s, unsigned sessions)
{
    const unsigned own = own_sessions(sessions);
    char other[WORKSPACE_NAME_MAX] = "", session[48];
    unsigned k = 0;

    for (unsigned i = 0; i < sessions; i++) {
        if (i >= own && (i - own) % OTHERS_PER_WS == 0) {
            next_workspace(other, sizeof(other), &k);
        }
        snprintf(session, sizeof(session), "waits-%u", i);
        bench_store_accept(s, i < own ? "bench" : other, session, i, MESSAGE);
    }
    bench_store_wait(s, 0);
}

static void on_settled(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    struct bench_store *s = arg;

    if (result != STORE_OK || !answer->applied) {
        bench_store_fail("settle", result);
    }
    s->outstanding--;
}

/* Every second one failed for good, the others wait for their backoff. */
static void put_off(struct bench_store *s, const struct claim *claim)
{
    static bool for_good;

    for_good = !for_good;
    const struct settle_request request = {
        .ref = {.workspace = claim->workspace,
                .session = claim->entry.session,
                .id = claim->entry.id,
                .token = claim->token,
                .sends = claim->entry.sends,
                .status = claim->entry.status},
        .step = {.state = {.status = for_good ? STATUS_ERROR : STATUS_PENDING, .attempts = 1},
                 .delay_ms = for_good ? -1 : NOT_DUE_MS,
                 .event = for_good ? EVENT_ERROR : EVENT_RETRYING},
        .error_code = span_of("attempts_exhausted"),
        .error_message = span_of("status 500"),
    };
    s->outstanding++;
    store_settle(s->store, &request, on_settled, s);
}

void claim_fill(struct bench_store *s, unsigned sessions)
{
    accept_many(s, sessions);
    const uint64_t count = bench_store_claim_all(s, CLAIM_PARTITION, put_off);

    if (count != sessions) {
        fprintf(stderr, "bench: %llu of %u sessions were put off\n", (unsigned long long)count,
                sessions);
        exit(1);
    }
}

void claim_fill_due(struct bench_store *s, unsigned sessions, unsigned due)
{
    char session[48];

    for (unsigned i = 0; i < due; i++) {
        snprintf(session, sizeof(session), "due-%u", i);
        bench_store_accept(s, "bench", session, (uint64_t)sessions + i, MESSAGE);
    }
    bench_store_wait(s, 0);
}

void claim_fill_behind(struct bench_store *s, unsigned sessions, unsigned number, unsigned count)
{
    const uint64_t first = (uint64_t)1 << 40; /* beyond the numbers of the others */
    char session[48];

    for (unsigned i = number; i < number + count; i++) {
        snprintf(session, sizeof(session), "waits-%u", i % own_sessions(sessions));
        bench_store_accept(s, "bench", session, first + i, MESSAGE);
    }
    bench_store_wait(s, 0);
}
