/* A store with its loop and the few calls that fill it, see the header. */
#include "tests/bench/bench_store.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define PIPELINE 256

void bench_store_fail(const char *what, enum store_result result)
{
    fprintf(stderr, "bench: %s: %s\n", what, store_result_name(result));
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
        .lock_ttl_ms = BENCH_LOCK_TTL_MS,
        .events_max = 1000,
    };
    int err = store_open(s->loop, &options, &s->store);

    if (err < 0) {
        fprintf(stderr, "bench: cannot open %s: %s\n", url, strerror(-err));
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
    const struct token_parts parts = {.node = BENCH_NODE,
                                      .generation = 1,
                                      .slot = 1,
                                      .incarnation = 1,
                                      .claim = ++s->claims_made};

    return lock_token_make(&parts);
}

static void on_accept(enum store_result result, const struct accept_answer *answer, void *arg)
{
    struct bench_store *s = arg;

    if (result != STORE_OK || answer->result != ACCEPT_ACCEPTED) {
        bench_store_fail("accept", result);
    }
    s->outstanding--;
}

void bench_store_accept(struct bench_store *s, const char *workspace, const char *session,
                        uint64_t number, struct span text)
{
    uint8_t random[10] = {0};
    const struct entry_body body = {.kind = span_of("bench"), .text = text, .has_text = true};

    memcpy(random, &number, sizeof(number));
    struct entry_id id = entry_id_make(1, random);
    const struct accept_request request = {
        .workspace = span_of(workspace),
        .session = span_of(session),
        .id = span_of(id.text),
        .digest = span_of("0123456789abcdef0123456789abcdef"),
        .flags = span_of("si"),
        .body = &body,
        .session_cap = 1000000,
    };
    s->outstanding++;
    store_accept(s->store, &request, on_accept, s);
    bench_store_wait(s, PIPELINE);
}

struct claiming {
    struct bench_store *s;
    void (*claimed)(struct bench_store *s, const struct claim *claim);
    uint64_t count;
    bool is_done;
};

static void on_claimed(enum store_result result, const struct claim_answer *answer, void *arg)
{
    struct claiming *claiming = arg;

    if (result != STORE_OK) {
        bench_store_fail("claim", result);
    }
    for (size_t i = 0; i < answer->count; i++) {
        claiming->claimed(claiming->s, &answer->claims[i]);
    }
    claiming->count += answer->count;
    claiming->is_done = answer->count == 0 && !answer->has_more;
    claiming->s->outstanding--;
}

uint64_t bench_store_claim_all(struct bench_store *s, uint32_t partition,
                               void (*claimed)(struct bench_store *s, const struct claim *claim))
{
    struct claiming claiming = {.s = s, .claimed = claimed};

    while (!claiming.is_done) {
        const struct claim_request request = {
            .partition = partition,
            .token = bench_store_token(s),
            .max = BENCH_CLAIMS_AT_ONCE,
            .max_per_workspace = BENCH_CLAIMS_AT_ONCE,
        };
        s->outstanding++;
        store_claim(s->store, &request, on_claimed, &claiming);
        bench_store_wait(s, 0);
    }
    return claiming.count;
}
