/* Leaves a store as a node leaves it that dies with many deliveries in flight: every entry staged
 * under the lock of a process that does not live. Its node is BENCH_NODE, so that a supervisor of
 * that name has to take all of it back. Each entry's text is an ID that the target keeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/keys.h"
#include "tests/bench/bench_store.h"
#include "tests/bench/sink_log.h"

#define WORKSPACES 64

static void keep(struct bench_store *s, const struct claim *claim)
{
    (void)s;
    (void)claim;
}

static void accept_all(struct bench_store *s, unsigned count)
{
    char workspace[32], session[32], text[MESSAGE_ID_MAX];

    for (unsigned i = 0; i < count; i++) {
        snprintf(workspace, sizeof(workspace), "bench-%u", i % WORKSPACES);
        snprintf(session, sizeof(session), "session-%u", i);
        snprintf(text, sizeof(text), MESSAGE_ID_PREFIX "staged-%06u-%08u", i, 0U);
        bench_store_accept(s, workspace, session, i, span_of(text));
    }
    bench_store_wait(s, 0);
}

int main(int argc, char **argv)
{
    const unsigned count = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    uint64_t staged = 0;

    if (count == 0) {
        fprintf(stderr, "usage: bench-stage SOCKET COUNT\n");
        return 2;
    }
    struct bench_store *s = bench_store_open(argv[1]);

    accept_all(s, count);
    for (uint32_t partition = 0; partition < PARTITION_COUNT; partition++) {
        staged += bench_store_claim_all(s, partition, keep);
    }
    bench_store_close(s);
    printf("staged=%llu\n", (unsigned long long)staged);
    return staged == count ? 0 : 1;
}
