/* Filling the store by the calls that the daemon makes, see the header: accept, claim, settle. */
#include "tests/bench/claim_fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/core/keys.h"

#define PIPELINE           256
#define NOT_DUE_MS         3600000 /* longer than any run */
#define OTHERS_PER_WS      10
#define CLAIMS_AT_ONCE     64
#define WORKSPACE_NAME_MAX 32

static void fail(const char *what, enum store_result result)
{
    fprintf(stderr, "claim-cost: %s: %s\n", what, store_result_name(result));
    exit(1);
}

struct bench_store *bench_store_open(const char *socket_path)
{
    struct bench_store *s = calloc(1, sizeof(*s));
    char url[256];

    if (!s || !(s->loop = calloc(1, sizeof(*s->loop))) || uv_loop_init(s->loop) < 0) {
        abort();
    }
    snprintf(url, sizeof(url), "unix://%s", socket_path);
    const struct store_options options = {
        .url = url,
        .connections = 1,
        .max_outstanding = PIPELINE * 4,
        .connect_timeout_ms = 5000,
        .command_timeout_ms = 60000,
        .durability = {.level = DURABILITY_FSYNC},
        .dedupe_ttl_ms = 86400000,
        .lock_ttl_ms = CLAIM_LOCK_TTL_MS,
        .events_max = 1000,
    };
    int err = store_open(s->loop, &options, &s->store);

    if (err < 0) {
        fprintf(stderr, "claim-cost: cannot open %s: %s\n", url, strerror(-err));
        exit(1);
    }
    while (!store_is_up(s->store)) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    return s;
}

void bench_store_close(struct bench_store *s)
{
    store_close(s->store, NULL, NULL);
    uv_run(s->loop, UV_RUN_DEFAULT);
    uv_loop_close(s->loop);
    free(s->loop);
    free(s);
}

void bench_store_wait(struct bench_store *s, uint64_t most)
{
    while (s->outstanding > most) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
}

struct lock_token bench_store_token(struct bench_store *s)
{
    const struct token_parts parts = {
        .node = "bench", .generation = 1, .slot = 1, .incarnation = 1, .claim = ++s->claims_made};

    return lock_token_make(&parts);
}

/* Names of other workspaces that fall into the same partition: "bench.K" for the K that do. */
static void next_workspace(char *name, size_t cap, unsigned *k)
{
    do {
        snprintf(name, cap, "bench.%u", (*k)++);
    } while (partition_of(name, strlen(name)) != CLAIM_PARTITION);
}

static void on_accept(enum store_result result, const struct accept_answer *answer, void *arg)
{
    struct bench_store *s = arg;

    if (result != STORE_OK || answer->result != ACCEPT_ACCEPTED) {
        fail("accept", result);
    }
    s->outstanding--;
}

static void accept_one(struct bench_store *s, const char *workspace, const char *session,
                       uint64_t number)
{
    uint8_t random[10] = {0};
    const struct entry_body body = {
        .kind = span_of("bench"),
        .text = span_of("a message that waits"),
        .has_text = true,
    };

    memcpy(random, &number, sizeof(number));
    struct entry_id id = entry_id_make(1, random);
    const struct accept_request request = {
        .workspace = span_of(workspace),
        .session = span_of(session),
        .id = span_of(id.text),
        .digest = span_of("0123456789abcdef0123456789abcdef"),
        .flags = span_of("si"),
        .body = &body,
        .session_cap = 25,
    };
    s->outstanding++;
    store_accept(s->store, &request, on_accept, s);
    bench_store_wait(s, PIPELINE);
}

static void accept_many(struct bench_store *s, unsigned sessions, const char *prefix)
{
    char other[WORKSPACE_NAME_MAX] = "", session[48];
    unsigned k = 0;

    for (unsigned i = 0; i < sessions; i++) {
        bool is_own = i < (sessions + 1) / 2;

        if (!is_own && (i - (sessions + 1) / 2) % OTHERS_PER_WS == 0) {
            next_workspace(other, sizeof(other), &k);
        }
        snprintf(session, sizeof(session), "%s-%u", prefix, i);
        accept_one(s, is_own ? "bench" : other, session, i);
    }
    bench_store_wait(s, 0);
}

static void on_settled(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    struct bench_store *s = arg;

    if (result != STORE_OK || !answer->applied) {
        fail("settle", result);
    }
    s->outstanding--;
}

/* Every second one failed for good, the others wait for their backoff. */
static void put_off(struct bench_store *s, const struct claim *claim, bool for_good)
{
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

struct filling {
    struct bench_store *s;
    uint64_t put_off;
    bool is_done;
};

static void on_claimed(enum store_result result, const struct claim_answer *answer, void *arg)
{
    struct filling *filling = arg;

    if (result != STORE_OK) {
        fail("claim", result);
    }
    for (size_t i = 0; i < answer->count; i++) {
        put_off(filling->s, &answer->claims[i], filling->put_off++ % 2 == 0);
    }
    filling->is_done = answer->count == 0 && !answer->has_more;
    filling->s->outstanding--;
}

void claim_fill(struct bench_store *s, unsigned sessions)
{
    struct filling filling = {.s = s};

    accept_many(s, sessions, "waits");
    while (!filling.is_done) {
        const struct claim_request request = {
            .partition = CLAIM_PARTITION,
            .token = bench_store_token(s),
            .max = CLAIMS_AT_ONCE,
            .max_per_workspace = CLAIMS_AT_ONCE,
        };
        s->outstanding++;
        store_claim(s->store, &request, on_claimed, &filling);
        bench_store_wait(s, 0);
    }
    if (filling.put_off != sessions) {
        fprintf(stderr, "claim-cost: %llu of %u sessions were put off\n",
                (unsigned long long)filling.put_off, sessions);
        exit(1);
    }
}

void claim_fill_due(struct bench_store *s, unsigned sessions, unsigned due)
{
    char session[48];

    for (unsigned i = 0; i < due; i++) {
        snprintf(session, sizeof(session), "due-%u", i);
        accept_one(s, "bench", session, (uint64_t)sessions + i);
    }
    bench_store_wait(s, 0);
}
