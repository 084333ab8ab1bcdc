/* Calls of workers. Outcomes are repeated until they are answered; a claim is not, for nobody
 * knows what it took: what stands under the worker's tokens is given back first. */
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "common/store/store_sweep.h"
#include "tests/store/crash/hand_repeat.h"

static void make_token(struct hand *hand, char ret[LOCK_TOKEN_MAX])
{
    snprintf(ret, LOCK_TOKEN_MAX, "node.1.%c.a.%x", hand->name, ++hand->made);
}

/* As worker/reconcile.c: only its own, and whatever each has staged. */
static bool give_back(struct hand *hand)
{
    char prefix[LOCK_TOKEN_MAX];
    bool is_whole;

    snprintf(prefix, sizeof(prefix), "node.1.%c.", hand->name);
    do {
        const struct taken_list held = sync_held_list(hand->s, CRASH_WORKSPACE, prefix);

        is_whole = was_answered(hand);
        for (size_t i = 0; i < held.count && !hand->is_dead; i++) {
            if (strncmp(held.items[i].token.text, prefix, strlen(prefix)) == 0) {
                sync_release(hand->s, &held.items[i]);
                is_whole &= was_answered(hand);
            }
        }
    } while (!is_whole && !hand->is_dead);
    return !hand->is_dead;
}

bool hand_claim(struct hand *hand, struct taken_list *ret)
{
    char token[LOCK_TOKEN_MAX];

    for (;;) {
        make_token(hand, token);
        *ret = sync_claim(hand->s, CRASH_WORKSPACE, token, 2, 2, NULL, 0);
        if (!must_repeat(hand) || !give_back(hand)) {
            return !hand->is_dead;
        }
    }
}

bool hand_note_baseline(struct hand *hand, const struct taken *taken, bool *ret_is_noted)
{
    do {
        *ret_is_noted = sync_note_baseline(hand->s, taken, "newest");
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_begin_send(struct hand *hand, const struct taken *taken, struct begin_send_answer *ret)
{
    do {
        *ret = sync_begin_send(hand->s, taken);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_finish(struct hand *hand, const struct taken *taken, enum sent_via via,
                 const char *result, bool want_next, struct outcome_copy *ret)
{
    do {
        *ret = sync_finish_via(hand->s, taken, via, result, want_next);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_settle(struct hand *hand, const struct taken *taken, struct settle_request *request,
                 struct outcome_copy *ret)
{
    do {
        *ret = sync_settle_request(hand->s, taken, request);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

bool hand_release(struct hand *hand, const struct taken *taken)
{
    do {
        sync_release(hand->s, taken);
    } while (must_repeat(hand));
    return !hand->is_dead;
}

/* ---- sweeps ---- */

struct waiting {
    bool is_done;
    struct swept *swept;
    size_t room, count;
    struct sync_store *s;
};

static void wait_for(struct hand *hand, const struct waiting *w)
{
    while (!w->is_done) {
        uv_run(hand->s->loop, UV_RUN_ONCE);
    }
}

static void copy(struct span from, char *to, size_t cap)
{
    snprintf(to, cap, "%.*s", (int)from.len, from.len > 0 ? from.ptr : "");
}

static void on_taken(enum store_result result, const struct sweep_take_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->s->result = result;
    for (size_t i = 0; answer && i < answer->count && w->count < w->room; i++) {
        const struct entry *entry = &answer->entries[i].entry;
        struct swept *swept = &w->swept[w->count++];

        copy(entry->id, swept->id, sizeof(swept->id));
        copy(entry->error_code, swept->code, sizeof(swept->code));
        swept->attempts = entry->attempts;
        swept->sends = entry->sends;
    }
}

bool hand_sweep_take(struct hand *hand, struct swept *ret, size_t room, size_t *ret_count)
{
    struct waiting w = {.swept = ret, .room = room, .s = hand->s};

    store_sweep_take(hand->s->store, partition_of(CRASH_WORKSPACE, strlen(CRASH_WORKSPACE)),
                     (uint32_t)room, AN_HOUR_MS, on_taken, &w);
    wait_for(hand, &w);
    *ret_count = w.count;
    return was_answered(hand);
}

static void on_settled(enum store_result result, bool yes, void *arg)
{
    struct waiting *w = arg;

    (void)yes;
    w->is_done = true;
    w->s->result = result;
}

bool hand_sweep_settle(struct hand *hand, const struct swept *swept, enum entry_status to,
                       uint32_t attempts)
{
    struct waiting w = {.s = hand->s};
    const struct sweep_settle_request request = {
        .workspace = span_of(CRASH_WORKSPACE),
        .id = span_of(swept->id),
        .attempts = swept->attempts,
        .sends = swept->sends,
        .error_code = span_of(swept->code),
        .to = to,
        .new_attempts = attempts,
        .via = VIA_VERIFICATION,
    };

    store_sweep_settle(hand->s->store, &request, on_settled, &w);
    wait_for(hand, &w);
    return !hand->is_dead; /* lost: the next pass finds it as it is */
}
