/* What a claim and an accept cost in two stores that differ in the number of their sessions only:
 * the time of the script as the server counts it (INFO commandstats), without network, fsync or
 * client.
 * The stores are measured in turn, in short blocks, so that both see the same machine. Prints one
 * line of key=value; both stores stay as they are. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "tests/bench/bench_store.h"
#include "tests/bench/claim_fill.h"
#include "tests/bench/quantile.h"

#define DUE_SESSIONS 8
#define BLOCK        100 /* calls of one store before it is the other's turn */
#define ROUNDS_MAX   1000
#define SETTLE_SECONDS                                                                             \
    5 /* the server and the kernel end what the filling left: rehashing, write-back */

struct samples {
    uint64_t *usec; /* owned */
    size_t count;
};

struct side {
    const char *socket_path;
    unsigned sessions;
    struct bench_store *s;
    redisContext *raw;           /* for what the server counts */
    struct samples due;          /* claims that found DUE_SESSIONS */
    struct samples idle, accept; /* by the block: claims that found nothing; accepts */
    size_t claimed;
    unsigned accepted;
    double bytes_per_entry; /* of the store's memory, when filled */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "claim-cost: %s: %s\n", what, why);
    exit(1);
}

static redisReply *command(struct side *side, const char *text)
{
    redisReply *reply = redisCommand(side->raw, text);

    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        die(text, reply ? reply->str : side->raw->errstr);
    }
    return reply;
}

static void set_fsync(struct side *side, const char *policy)
{
    char text[64];

    snprintf(text, sizeof(text), "CONFIG SET appendfsync %s", policy);
    freeReplyObject(command(side, text));
}

/* Microseconds of EVALSHA since the last reset. */
static void add_stats(struct side *side, struct samples *samples)
{
    redisReply *reply = command(side, "INFO commandstats");
    const char *row = strstr(reply->str, "cmdstat_evalsha:calls=");
    unsigned long long calls = 0, usec = 0;

    if (!row || sscanf(row, "cmdstat_evalsha:calls=%llu,usec=%llu", &calls, &usec) != 2) {
        die("INFO commandstats", "no row for evalsha");
    }
    samples->usec[samples->count++] = usec;
    freeReplyObject(reply);
}

static void on_released(enum store_result result, bool yes, void *arg)
{
    struct side *side = arg;

    if (result != STORE_OK || !yes) {
        die("release", store_result_name(result));
    }
    side->s->outstanding--;
}

/* Claims are counted, then given back: due again at once. */
static void on_claimed(enum store_result result, const struct claim_answer *answer, void *arg)
{
    struct side *side = arg;

    if (result != STORE_OK) {
        die("claim", store_result_name(result));
    }
    side->claimed = answer->count;
    side->s->outstanding--;
    if (answer->count == 0) {
        return;
    }
    add_stats(side, &side->due);
    for (size_t i = 0; i < answer->count; i++) {
        const struct claim *claim = &answer->claims[i];
        const struct claim_ref ref = {.workspace = claim->workspace,
                                      .session = claim->entry.session,
                                      .id = claim->entry.id,
                                      .token = claim->token,
                                      .sends = claim->entry.sends,
                                      .status = claim->entry.status};

        side->s->outstanding++;
        store_release(side->s->store, &ref, 0, on_released, side);
    }
}

static void claim_once(struct side *side, uint32_t max)
{
    const struct claim_request request = {
        .partition = CLAIM_PARTITION,
        .token = bench_store_token(side->s),
        .max = max,
        .max_per_workspace = max,
    };
    side->s->outstanding++;
    store_claim(side->s->store, &request, on_claimed, side);
    bench_store_wait(side->s, 0);
}

static void claim_due(struct side *side)
{
    freeReplyObject(command(side, "CONFIG RESETSTAT"));
    claim_once(side, DUE_SESSIONS);
    if (side->claimed != DUE_SESSIONS) {
        die("claim", "not every due session was claimed");
    }
}

/* With nothing due: what a worker's look at the index costs. */
static void claim_nothing(struct side *side)
{
    freeReplyObject(command(side, "CONFIG RESETSTAT"));
    for (int i = 0; i < BLOCK; i++) {
        claim_once(side, DUE_SESSIONS);
        if (side->claimed != 0) {
            die("claim", "something was due");
        }
    }
    add_stats(side, &side->idle);
}

static void accept_block(struct side *side)
{
    freeReplyObject(command(side, "CONFIG RESETSTAT"));
    claim_fill_behind(side->s, side->sessions, side->accepted, BLOCK);
    side->accepted += BLOCK;
    add_stats(side, &side->accept);
}

static uint64_t used_memory(struct side *side)
{
    redisReply *reply = command(side, "INFO memory");
    const char *row = strstr(reply->str, "used_memory:");
    const uint64_t bytes = row ? strtoull(row + strlen("used_memory:"), NULL, 10) : 0;

    freeReplyObject(reply);
    return bytes;
}

static void fill(struct side *side)
{
    set_fsync(side, "no"); /* the filling is not what is measured */
    const uint64_t before = used_memory(side);

    claim_fill(side->s, side->sessions);
    side->bytes_per_entry = (double)(used_memory(side) - before) / side->sessions;
    set_fsync(side, "always");
}

static void side_open(struct side *side, unsigned rounds)
{
    side->due.usec = calloc((size_t)rounds * BLOCK, sizeof(uint64_t));
    side->idle.usec = calloc(rounds, sizeof(uint64_t));
    side->accept.usec = calloc(rounds, sizeof(uint64_t));
    if (!side->due.usec || !side->idle.usec || !side->accept.usec) {
        abort();
    }
    side->raw = redisConnectUnix(side->socket_path);
    if (!side->raw || side->raw->err) {
        die(side->socket_path, side->raw ? side->raw->errstr : "out of memory");
    }
    side->s = bench_store_open(side->socket_path);
    fill(side);
}

/* The median: what else runs on the machine shows in the mean. */
static double typical_usec(struct samples *samples, unsigned calls_each)
{
    quantile_sort(samples->usec, samples->count);
    return quantile_ms(samples->usec, samples->count, 0.5) * 1e6 / calls_each;
}

static unsigned number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

static void measure(struct side *sides, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        claim_nothing(&sides[round % 2]);
        claim_nothing(&sides[(round + 1) % 2]);
    }
    for (int i = 0; i < 2; i++) {
        claim_fill_due(sides[i].s, sides[i].sessions, DUE_SESSIONS);
    }
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < 2 * BLOCK; i++) {
            claim_due(&sides[(round + (unsigned)(i / BLOCK)) % 2]);
        }
    }
    for (unsigned round = 0; round < 2 * rounds; round++) {
        accept_block(&sides[(round + round / 2) % 2]); /* few, many, many, few, … */
    }
}

static void print_row(const char *name, double few, double many)
{
    printf(" %s_usec=%.1f,%.1f %s_ratio=%.3f", name, few, many, name, few > 0 ? many / few : 0);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc == 6 ? number(argv[5]) : 0;

    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench-claim-cost SOCKET SESSIONS SOCKET SESSIONS ROUNDS\n");
        return 2;
    }
    struct side sides[2] = {{.socket_path = argv[1], .sessions = number(argv[2])},
                            {.socket_path = argv[3], .sessions = number(argv[4])}};

    for (int i = 0; i < 2; i++) {
        side_open(&sides[i], rounds);
    }
    sleep(SETTLE_SECONDS);
    measure(sides, rounds);
    printf("sessions=%u,%u due=%d", sides[0].sessions, sides[1].sessions, DUE_SESSIONS);
    print_row("claim", typical_usec(&sides[0].due, 1), typical_usec(&sides[1].due, 1));
    print_row("idle", typical_usec(&sides[0].idle, BLOCK), typical_usec(&sides[1].idle, BLOCK));
    print_row("accept", typical_usec(&sides[0].accept, BLOCK),
              typical_usec(&sides[1].accept, BLOCK));
    printf(" bytes_per_entry=%.0f\n", sides[1].bytes_per_entry);
    for (int i = 0; i < 2; i++) {
        redisFree(sides[i].raw);
        bench_store_close(sides[i].s);
        free(sides[i].due.usec);
        free(sides[i].idle.usec);
        free(sides[i].accept.usec);
    }
    return 0;
}
