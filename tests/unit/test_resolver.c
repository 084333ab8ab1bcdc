/* The resolver against every small workspace: contract §6, "One resolver". Each workspace of up to
 * four entries in two strict lanes, with every graph of dependencies and every state that an entry
 * may be in, and every operation on each of its entries. The plan is carried out on a model; then:
 * what is left waits only for what is there, without cycles, in an order in which every lane gets
 * on; and once the failed entries were retried or discarded, everything leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/core/resolver.h"

#define ENTRIES_MAX 4
#define MODEL_MAX   (ENTRIES_MAX + 1) /* and the created one */
#define LANES       2
#define NOW         100

enum state {
    UNSENT, /* pending, never sent */
    AGAIN,  /* pending, sent before */
    SENDING,
    VERIFYING,
    FAILED,          /* refused for its own reason */
    FAILED_UNKNOWN,  /* the same, and the target may have it */
    FAILED_BY_CHAIN, /* what it waited for was discarded */
    PARKED,
    STATE_COUNT,
};

struct model_entry {
    bool is_there;
    enum state state;
    bool is_idempotent;
    bool is_follow_up; /* an edit of the first one that it waits for */
    uint32_t lane;
    int64_t rank;
    uint32_t deps[MODEL_MAX];
    size_t dep_count;
};
struct model {
    struct model_entry entries[MODEL_MAX];
    uint32_t order[LANES][MODEL_MAX]; /* each lane's queue */
    size_t lengths[LANES];
};

/* ---- from a model to what the resolver reads ---- */

static void to_resolver(const struct model *model, size_t count, bool can_follow,
                        struct resolver_entry *ret)
{
    static const struct resolver_entry by_state[STATE_COUNT] = {
        [UNSENT] = {.status = STATUS_PENDING},
        [AGAIN] = {.status = STATUS_PENDING, .sends = 1},
        [SENDING] = {.status = STATUS_DELIVERING, .sends = 1, .is_in_flight = true},
        [VERIFYING] = {.status = STATUS_VERIFYING, .sends = 1},
        [FAILED] = {.status = STATUS_ERROR, .sends = 1},
        [FAILED_UNKNOWN] = {.status = STATUS_ERROR, .sends = 1, .may_be_stored = true},
        [FAILED_BY_CHAIN] = {.status = STATUS_ERROR, .failed_with_chain = true},
        [PARKED] = {.status = STATUS_PARKED},
    };

    for (size_t i = 0; i < count; i++) {
        const struct model_entry *entry = &model->entries[i];

        ret[i] = by_state[entry->state];
        ret[i].is_idempotent = entry->is_idempotent;
        ret[i].can_follow_edit = can_follow;
        ret[i].can_follow_remove = can_follow;
        ret[i].rank = entry->rank;
        ret[i].part = entry->is_follow_up ? RESOLVER_PART_EDIT : RESOLVER_PART_NONE;
        ret[i].root = entry->is_follow_up ? entry->deps[0] : RESOLVER_NONE;
        ret[i].deps = entry->deps;
        ret[i].dep_count = entry->dep_count;
    }
}

/* ---- carrying a plan out, as the script does ---- */

static void leave_queue(struct model *model, uint32_t i)
{
    const uint32_t lane = model->entries[i].lane;
    size_t kept = 0;

    for (size_t at = 0; at < model->lengths[lane]; at++) {
        if (model->order[lane][at] != i) {
            model->order[lane][kept++] = model->order[lane][at];
        }
    }
    model->lengths[lane] = kept;
}

/* Before the first one of a higher rank, or of the same that is not among its dependencies. */
static void enter_queue(struct model *model, uint32_t i)
{
    const struct model_entry *entry = &model->entries[i];
    size_t at = model->lengths[entry->lane];
    uint32_t *order = model->order[entry->lane];

    while (at > 0 && model->entries[order[at - 1]].rank >= entry->rank) {
        at--;
    }
    memmove(order + at + 1, order + at, (model->lengths[entry->lane] - at) * sizeof(order[0]));
    order[at] = i;
    model->lengths[entry->lane]++;
}

static void apply(struct model *model, size_t count, const struct resolver_plan *plan,
                  uint32_t lane_of_created)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct resolver_change *change = &plan->changes[i];
        struct model_entry *entry = &model->entries[i];

        if (change->has_deps) {
            assert_true(change->dep_count <= MODEL_MAX);
            for (size_t d = 0; d < change->dep_count; d++) {
                entry->deps[d] = change->deps[d];
            }
            entry->dep_count = change->dep_count;
        }
        switch (change->fate) {
        case RESOLVER_STAYS:
            break;
        case RESOLVER_REARMED:
            entry->state = entry->state == FAILED_BY_CHAIN ? UNSENT : AGAIN;
            break;
        case RESOLVER_FAILS:
            entry->state = FAILED_BY_CHAIN;
            break;
        case RESOLVER_ENDS_REMOVED:
        case RESOLVER_ENDS_DISCARDED:
        case RESOLVER_ENDS_REPLACED:
            entry->is_there = false;
            leave_queue(model, i);
            break;
        }
    }
    if (plan->creates != RESOLVER_CREATES_NOTHING) {
        struct model_entry *created = &model->entries[count];

        *created = (struct model_entry){.is_there = true,
                                        .state = UNSENT,
                                        .is_idempotent = true,
                                        .lane = lane_of_created,
                                        .rank = plan->created_rank,
                                        .dep_count = plan->created_dep_count};
        for (size_t d = 0; d < plan->created_dep_count; d++) {
            created->deps[d] = plan->created_deps[d];
        }
        enter_queue(model, (uint32_t)count);
    }
}

/* ---- what must hold ---- */

static bool is_open(const struct model_entry *entry)
{
    return entry->state == UNSENT || entry->state == AGAIN || entry->state == SENDING ||
           entry->state == VERIFYING;
}

static bool reaches(const struct model *model, uint32_t from, uint32_t to, size_t steps)
{
    const struct model_entry *entry = &model->entries[from];

    for (size_t d = 0; steps > 0 && d < entry->dep_count; d++) {
        if (entry->deps[d] == to || reaches(model, entry->deps[d], to, steps - 1)) {
            return true;
        }
    }
    return false;
}

static void check_invariants(const struct model *model)
{
    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        const struct model_entry *entry = &model->entries[i];

        if (!entry->is_there) {
            continue;
        }
        for (size_t d = 0; d < entry->dep_count; d++) {
            const struct model_entry *dep = &model->entries[entry->deps[d]];

            assert_true(dep->is_there); /* never for something that can no longer happen */
            assert_true(dep->rank <= entry->rank);
        }
        assert_false(reaches(model, i, i, MODEL_MAX));
    }
}

/* The first of a strict lane that is not passed over, if it may go. */
static bool get_on(struct model *model, uint32_t lane)
{
    for (size_t at = 0; at < model->lengths[lane]; at++) {
        const uint32_t i = model->order[lane][at];
        const struct model_entry *entry = &model->entries[i];

        if (!is_open(entry)) {
            continue;
        }
        if (entry->dep_count > 0) {
            return false;
        }
        model->entries[i].is_there = false;
        leave_queue(model, i);
        for (uint32_t other = 0; other < MODEL_MAX; other++) { /* confirmed */
            struct model_entry *waiting = &model->entries[other];
            size_t kept = 0;

            for (size_t d = 0; d < waiting->dep_count; d++) {
                if (waiting->deps[d] != i) {
                    waiting->deps[kept++] = waiting->deps[d];
                }
            }
            waiting->dep_count = kept;
        }
        return true;
    }
    return false;
}

/* Every failed and parked entry is sent again in its place; then everything must leave. */
static void check_that_all_can_leave(struct model model)
{
    bool is_moving = true;

    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        model.entries[i].state = model.entries[i].is_there ? UNSENT : model.entries[i].state;
    }
    while (is_moving) {
        is_moving = false;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            is_moving = get_on(&model, lane) || is_moving;
        }
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        assert_int_equal(model.lengths[lane], 0);
    }
}

static bool waits(const struct model_entry *entry, uint32_t other)
{
    for (size_t d = 0; d < entry->dep_count; d++) {
        if (entry->deps[d] == other) {
            return true;
        }
    }
    return false;
}

/* The whole chain of what was discarded failed; what outboxd links itself skips such a chain. */
static void check_chains(const struct model *after, size_t count, const struct resolver_plan *plan)
{
    const bool is_follow_up = plan->creates == RESOLVER_CREATES_FOLLOW_EDIT ||
                              plan->creates == RESOLVER_CREATES_FOLLOW_REMOVE;

    for (uint32_t i = 0; i < count; i++) {
        const struct model_entry *entry = &after->entries[i];

        for (uint32_t other = 0; other < count && plan->changes[i].fate == RESOLVER_FAILS;
             other++) {
            const struct model_entry *waiting = &after->entries[other];

            assert_false(waiting->is_there && waits(waiting, i) &&
                         (is_open(waiting) || waiting->state == PARKED));
        }
        assert_false(is_follow_up && waits(&after->entries[count], i) &&
                     entry->state == FAILED_BY_CHAIN);
    }
}

static void check_operation(const struct model *before, size_t count, bool can_follow,
                            enum resolver_operation operation, uint32_t target)
{
    struct resolver_entry entries[ENTRIES_MAX] = {{.sends = 0}};
    struct resolver_plan plan;
    struct model after = *before;

    to_resolver(before, count, can_follow, entries);
    assert_int_equal(resolver_plan(entries, count, operation, target, NOW, &plan), 0);
    if (plan.result == RESOLVER_DONE) {
        apply(&after, count, &plan, before->entries[target].lane);
        check_invariants(&after);
        check_chains(&after, count, &plan);
        check_that_all_can_leave(after);
    }
    /* What is with the target, or may have reached it, keeps its payload and its ID. */
    if (before->entries[target].state == SENDING) {
        assert_int_equal(plan.changes[target].fate, RESOLVER_STAYS);
        assert_int_not_equal(plan.patched, target);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].sends > 0) {
            assert_int_not_equal(plan.patched, i);
        }
    }
    resolver_plan_done(&plan);
}

/* ---- every workspace ---- */

struct walk {
    size_t count;    /* entries of the workspace */
    uint32_t target; /* the one that is operated on */
    uint64_t workspaces;
};

static void try_workspace(const struct model *model, struct walk *walk)
{
    walk->workspaces++;
    check_operation(model, walk->count, false, RESOLVER_RETRY, walk->target);
    for (int can_follow = 0; can_follow < 2; can_follow++) {
        check_operation(model, walk->count, can_follow != 0, RESOLVER_EDIT, walk->target);
        check_operation(model, walk->count, can_follow != 0, RESOLVER_REMOVE, walk->target);
    }
}

/* What waits was never sent. Of those that are not operated on, one state stands for all that were
 * sent and are not over, and one for all that failed for their own reason: the resolver asks no
 * more of them. */
static bool may_be(enum state state, size_t dep_count, bool is_target)
{
    const bool is_like_another = state == AGAIN || state == VERIFYING || state == FAILED_UNKNOWN;

    if (dep_count > 0 && state != UNSENT && state != PARKED && state != FAILED_BY_CHAIN) {
        return false;
    }
    return is_target || !is_like_another;
}

static bool has_failed(enum state state)
{
    return state == FAILED || state == FAILED_UNKNOWN || state == FAILED_BY_CHAIN;
}

static void each_entry(struct model *model, uint32_t i, struct walk *walk);

/* All forms of one entry whose dependencies stand: lane, idempotent or not (asked of a failed
 * target only), a follow-up of what it waits for or an entry of its own. */
static void each_form(struct model *model, uint32_t i, enum state state, struct walk *walk)
{
    struct model_entry *entry = &model->entries[i];
    const bool asks_kind = i == walk->target && has_failed(state);
    const bool may_follow = entry->dep_count > 0 && (state == UNSENT || state == FAILED_BY_CHAIN);

    entry->is_there = true;
    entry->state = state;
    entry->rank = i + 1;
    for (uint32_t lane = 0; lane < (i == 0 ? 1U : LANES);
         lane++) { /* the first one's names the lanes */
        for (int idempotent = 0; idempotent <= asks_kind; idempotent++) {
            for (int follows = 0; follows <= may_follow; follows++) {
                entry->lane = lane;
                entry->is_idempotent = idempotent != 0;
                entry->is_follow_up = follows != 0;
                model->order[lane][model->lengths[lane]++] = i;
                each_entry(model, i + 1, walk);
                model->lengths[lane]--;
            }
        }
    }
}

static void each_entry(struct model *model, uint32_t i, struct walk *walk)
{
    if (i == walk->count) {
        try_workspace(model, walk);
        return;
    }
    struct model_entry *entry = &model->entries[i];

    for (uint32_t graph = 0; graph < 1U << i; graph++) {
        entry->dep_count = 0;
        for (uint32_t dep = 0; dep < i; dep++) {
            if (graph & 1U << dep) {
                entry->deps[entry->dep_count++] = dep;
            }
        }
        for (int state = 0; state < STATE_COUNT; state++) {
            if (may_be((enum state)state, entry->dep_count, i == walk->target)) {
                each_form(model, i, (enum state)state, walk);
            }
        }
    }
    *entry = (struct model_entry){0};
}

static void no_operation_on_any_small_workspace_leaves_what_can_never_move(void **state)
{
    uint64_t workspaces = 0;

    (void)state;
    for (size_t count = 1; count <= ENTRIES_MAX; count++) {
        for (uint32_t target = 0; target < count; target++) {
            struct model model = {0};
            struct walk walk = {.count = count, .target = target};

            each_entry(&model, 0, &walk);
            workspaces += walk.workspaces;
        }
    }
    print_message("%llu workspaces\n", (unsigned long long)workspaces);
    assert_true(workspaces > 500000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operation_on_any_small_workspace_leaves_what_can_never_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
