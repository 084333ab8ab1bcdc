/* The rules of contract §6, one function for each way an operation can go. All of them only write
 * into the plan; what they read stays as it was. */
#include "common/core/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct work {
    const struct resolver_entry *entries;
    uint32_t count; /* also the number of the created entry */
    uint32_t target;
    int64_t now_ms;
    struct resolver_plan *plan;
    bool *seen; /* of one walk */
    bool is_out_of_memory;
};

/* ---- the graph ---- */

static bool waits_for(const struct resolver_entry *entry, uint32_t other)
{
    for (size_t i = 0; i < entry->dep_count; i++) {
        if (entry->deps[i] == other) {
            return true;
        }
    }
    return false;
}

static bool ends(const struct work *work, uint32_t i)
{
    const enum resolver_fate fate = work->plan->changes[i].fate;

    return fate == RESOLVER_ENDS_REMOVED || fate == RESOLVER_ENDS_DISCARDED ||
           fate == RESOLVER_ENDS_REPLACED;
}

static bool is_unsent(const struct resolver_entry *entry)
{
    return entry->sends == 0 && !entry->is_in_flight &&
           (entry->status == STATUS_PENDING || entry->status == STATUS_PARKED);
}

/* It is with the target now, or the target owns its attempt. */
static bool is_busy(const struct resolver_entry *entry)
{
    return entry->is_in_flight || entry->status == STATUS_DELIVERING;
}

/* The lowest rank of all that waits for `of`, directly or not; `or` if nothing does. */
static int64_t lowest_rank(struct work *work, uint32_t of, int64_t or)
{
    int64_t lowest = or ;

    work->seen[of] = true;
    for (uint32_t i = 0; i < work->count; i++) {
        if (!work->seen[i] && waits_for(&work->entries[i], of)) {
            const int64_t own = work->entries[i].rank;

            lowest = lowest_rank(work, i, own < lowest ? own : lowest);
        }
    }
    return lowest;
}

static void clear_seen(struct work *work)
{
    memset(work->seen, 0, work->count * sizeof(work->seen[0]));
}

/* ---- lists of dependencies ---- */

struct list {
    uint32_t *items;
    size_t count;
};

static void list_add(struct work *work, struct list *list, uint32_t item)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == item) {
            return;
        }
    }
    uint32_t *items = realloc(list->items, (list->count + 1) * sizeof(items[0]));

    if (!items) {
        work->is_out_of_memory = true;
        return;
    }
    items[list->count++] = item;
    list->items = items;
}

static void set_deps(struct work *work, uint32_t i, struct list list)
{
    struct resolver_change *change = &work->plan->changes[i];

    (void)work;
    free(change->deps);
    change->has_deps = true;
    change->deps = list.items;
    change->dep_count = list.count;
}

/* A dependency that outboxd writes itself: an entry that failed with its chain is skipped, and what
 * that one waited for is taken instead. */
static void add_bridged(struct work *work, struct list *list, uint32_t to)
{
    const struct resolver_entry *entry = &work->entries[to];

    if (work->seen[to]) {
        return;
    }
    work->seen[to] = true;
    if (!(entry->status == STATUS_ERROR && entry->failed_with_chain)) {
        list_add(work, list, to);
        return;
    }
    for (size_t i = 0; i < entry->dep_count; i++) {
        add_bridged(work, list, entry->deps[i]);
    }
}

/* Whoever waited for `from` waits for `to` instead. */
static void repoint(struct work *work, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < work->count; i++) {
        const struct resolver_change *change = &work->plan->changes[i];
        const uint32_t *deps = change->has_deps ? change->deps : work->entries[i].deps;
        const size_t count = change->has_deps ? change->dep_count : work->entries[i].dep_count;
        bool is_concerned = false;
        struct list list = {0};

        for (size_t d = 0; d < count; d++) {
            is_concerned = is_concerned || deps[d] == from;
            list_add(work, &list, deps[d] == from ? to : deps[d]);
        }
        if (is_concerned && !ends(work, i)) {
            set_deps(work, i, list);
        } else {
            free(list.items);
        }
    }
}

/* ---- chains of follow-ups ---- */

/* The entry that a chain is about. */
static uint32_t root_of(const struct work *work, uint32_t i)
{
    const struct resolver_entry *entry = &work->entries[i];

    return entry->part != RESOLVER_PART_NONE && entry->root < work->count ? entry->root : i;
}

/* The newest of a chain: the follow-up of the highest rank, or the root itself. */
static uint32_t newest_of(const struct work *work, uint32_t root)
{
    uint32_t newest = root;

    for (uint32_t i = 0; i < work->count; i++) {
        const struct resolver_entry *entry = &work->entries[i];

        if (entry->part != RESOLVER_PART_NONE && entry->root == root &&
            (newest == root || entry->rank >= work->entries[newest].rank)) {
            newest = i;
        }
    }
    return newest;
}

static bool is_dropped_by_edit(const struct work *work, uint32_t i)
{
    const struct resolver_entry *entry = &work->entries[i];

    return entry->part == RESOLVER_PART_EDIT && entry->root == work->target && entry->sends == 0 &&
           !is_busy(entry);
}

/* ---- what is created ---- */

static void create(struct work *work, enum resolver_creates creates, uint32_t from,
                   struct list deps)
{
    struct resolver_plan *plan = work->plan;

    plan->creates = creates;
    plan->subject = work->count;
    plan->created_from = from;
    plan->created_deps = deps.items;
    plan->created_dep_count = deps.count;
    plan->created_rank = work->now_ms;
}

static void follow_up(struct work *work, enum resolver_creates creates, uint32_t content)
{
    const uint32_t root = root_of(work, work->target);
    struct list deps = {0};

    add_bridged(work, &deps, newest_of(work, root));
    clear_seen(work);
    create(work, creates, content, deps);
    work->plan->created_root = root;
    work->plan->what = RESOLVER_FOLLOW_UP;
}

/* The target under a new ID, at the end of its lane, but no later than what waits for it. */
static void replace(struct work *work)
{
    const struct resolver_entry *entry = &work->entries[work->target];
    struct list deps = {0};

    for (size_t i = 0; i < entry->dep_count; i++) {
        list_add(work, &deps, entry->deps[i]);
    }
    create(work, RESOLVER_CREATES_REPLACEMENT, work->target, deps);
    work->plan->created_root = entry->part != RESOLVER_PART_NONE ? entry->root : RESOLVER_NONE;
    work->plan->created_rank = lowest_rank(work, work->target, work->now_ms);
    for (uint32_t i = 0; i < work->count; i++) {
        work->plan->is_created_awaited |= waits_for(&work->entries[i], work->target);
    }
    clear_seen(work);
    work->plan->changes[work->target].fate = RESOLVER_ENDS_REPLACED;
    work->plan->what = RESOLVER_REPLACED;
    repoint(work, work->target, work->count);
}

/* ---- the operations ---- */

static void rearm(struct work *work)
{
    const struct resolver_entry *entry = &work->entries[work->target];
    struct list deps = {0};

    for (size_t i = 0; i < entry->dep_count; i++) {
        list_add(work, &deps, entry->deps[i]);
    }
    set_deps(work, work->target, deps); /* those that are gone are left out */
    work->plan->changes[work->target].fate = RESOLVER_REARMED;
}

static void plan_retry(struct work *work)
{
    const struct resolver_entry *entry = &work->entries[work->target];

    if (entry->is_in_flight) {
        work->plan->result = RESOLVER_BUSY;
    } else if (entry->status != STATUS_ERROR) {
        work->plan->result = RESOLVER_NOT_FAILED;
    } else if (entry->is_idempotent) {
        replace(work);
    } else {
        rearm(work);
        work->plan->what = RESOLVER_RETRIED;
    }
}

static void edit_in_place(struct work *work, uint32_t i)
{
    work->plan->patched = i;
    work->plan->patch_from = i;
    work->plan->subject = i;
}

/* A failed entry of an idempotent kind. Edits of it that were never sent are in the replacement. */
static void edit_failed(struct work *work)
{
    uint32_t content = work->target;

    replace(work);
    for (uint32_t i = 0; i < work->count; i++) {
        if (is_dropped_by_edit(work, i)) {
            if (content == work->target || work->entries[i].rank >= work->entries[content].rank) {
                content = i;
            }
            work->plan->changes[i].fate = RESOLVER_ENDS_REPLACED;
        }
    }
    for (uint32_t i = 0; i < work->count; i++) {
        if (i != work->target && work->plan->changes[i].fate == RESOLVER_ENDS_REPLACED) {
            repoint(work, i, work->count);
        }
    }
    work->plan->patched = work->count;
    work->plan->patch_from = content;
}

static void edit_by_follow_up(struct work *work)
{
    const uint32_t root = root_of(work, work->target);
    const uint32_t newest = newest_of(work, root);
    const struct resolver_entry *last = &work->entries[newest];

    if (!work->entries[root].can_follow_edit || last->part == RESOLVER_PART_REMOVE) {
        work->plan->result = RESOLVER_ALREADY_SENT;
        return;
    }
    if (last->part == RESOLVER_PART_EDIT && is_unsent(last)) {
        edit_in_place(work, newest);
        work->plan->what = RESOLVER_FOLLOW_UP;
        return;
    }
    follow_up(work, RESOLVER_CREATES_FOLLOW_EDIT, newest);
    work->plan->patched = work->count;
    work->plan->patch_from = newest;
}

static void plan_edit(struct work *work)
{
    const struct resolver_entry *entry = &work->entries[work->target];
    const bool has_failed = entry->status == STATUS_ERROR && !is_busy(entry);

    if (has_failed && entry->is_idempotent) {
        edit_failed(work);
    } else if (is_unsent(entry)) {
        edit_in_place(work, work->target);
        work->plan->what = RESOLVER_EDITED;
    } else if (has_failed && entry->sends == 0) {
        rearm(work);
        edit_in_place(work, work->target);
        work->plan->what = RESOLVER_EDITED;
    } else {
        edit_by_follow_up(work);
    }
}

/* All that waits for it, directly or not, can't happen any more. An entry that failed for its own
 * reason stays as it is: what waits for that one still waits. */
static void fail_chain(struct work *work, uint32_t of)
{
    for (uint32_t i = 0; i < work->count; i++) {
        struct resolver_change *change = &work->plan->changes[i];

        if (!waits_for(&work->entries[i], of) || ends(work, i)) {
            continue;
        }
        struct list left = {0};
        const uint32_t *deps = change->has_deps ? change->deps : work->entries[i].deps;
        const size_t count = change->has_deps ? change->dep_count : work->entries[i].dep_count;

        for (size_t d = 0; d < count; d++) {
            if (!ends(work, deps[d])) {
                list_add(work, &left, deps[d]);
            }
        }
        set_deps(work, i, left);
        if (change->fate == RESOLVER_STAYS && work->entries[i].status != STATUS_ERROR) {
            change->fate = RESOLVER_FAILS;
            fail_chain(work, i);
        }
    }
}

static void end_target(struct work *work, enum resolver_fate fate, enum resolver_what what)
{
    work->plan->changes[work->target].fate = fate;
    work->plan->what = what;
    fail_chain(work, work->target);
}

static void discard(struct work *work)
{
    const struct resolver_entry *entry = &work->entries[work->target];

    for (uint32_t i = 0; i < work->count; i++) {
        if (waits_for(&work->entries[i], work->target)) {
            work->plan->changes[i].fills_from = work->target;
        }
    }
    end_target(work, RESOLVER_ENDS_DISCARDED, RESOLVER_DISCARDED);
    if (entry->may_be_stored && entry->can_follow_remove) {
        create(work, RESOLVER_CREATES_FOLLOW_REMOVE, work->target, (struct list){0});
        work->plan->subject = work->target;
    }
}

static void remove_by_follow_up(struct work *work)
{
    const uint32_t root = root_of(work, work->target);
    const uint32_t newest = newest_of(work, root);

    if (work->entries[newest].part == RESOLVER_PART_REMOVE) {
        work->plan->subject = newest; /* asked for already */
        work->plan->what = RESOLVER_FOLLOW_UP;
        return;
    }
    follow_up(work, RESOLVER_CREATES_FOLLOW_REMOVE, newest);
}

static void plan_remove(struct work *work)
{
    const struct resolver_entry *entry = &work->entries[work->target];

    if (entry->status == STATUS_ERROR && !is_busy(entry)) {
        discard(work);
    } else if (!is_unsent(entry) && entry->part == RESOLVER_PART_NONE && entry->can_follow_remove) {
        remove_by_follow_up(work);
    } else if (is_busy(entry)) {
        work->plan->result = RESOLVER_BUSY;
    } else {
        end_target(work, RESOLVER_ENDS_REMOVED, RESOLVER_REMOVED);
    }
}

/* ---- */

static bool is_sound(const struct resolver_entry *entries, size_t count, uint32_t target)
{
    if (count >= RESOLVER_NONE || target >= count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < entries[i].dep_count; d++) {
            if (entries[i].deps[d] >= count) {
                return false;
            }
        }
    }
    return true;
}

int resolver_plan(const struct resolver_entry *entries, size_t count,
                  enum resolver_operation operation, uint32_t target, int64_t now_ms,
                  struct resolver_plan *ret)
{
    static void (*const operations[])(struct work *) = {
        [RESOLVER_RETRY] = plan_retry,
        [RESOLVER_EDIT] = plan_edit,
        [RESOLVER_REMOVE] = plan_remove,
    };

    *ret = (struct resolver_plan){.subject = target,
                                  .patched = RESOLVER_NONE,
                                  .patch_from = RESOLVER_NONE,
                                  .created_from = RESOLVER_NONE,
                                  .created_root = RESOLVER_NONE};
    if (!is_sound(entries, count, target)) {
        return -EINVAL;
    }
    struct work work = {.entries = entries,
                        .count = (uint32_t)count,
                        .target = target,
                        .now_ms = now_ms,
                        .plan = ret,
                        .seen = calloc(count, sizeof(bool))};

    ret->changes = calloc(count, sizeof(ret->changes[0]));
    if (!ret->changes || !work.seen) {
        free(work.seen);
        return -ENOMEM;
    }
    ret->count = count;
    for (size_t i = 0; i < count; i++) {
        ret->changes[i].fills_from = RESOLVER_NONE;
    }
    operations[operation](&work);
    free(work.seen);
    return work.is_out_of_memory ? -ENOMEM : 0;
}

void resolver_plan_done(struct resolver_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->changes[i].deps);
    }
    free(plan->changes);
    free(plan->created_deps);
    *plan = (struct resolver_plan){0};
}

const char *resolver_what_name(enum resolver_what what)
{
    static const char *const names[] = {
        [RESOLVER_RETRIED] = "retried", [RESOLVER_REPLACED] = "replaced",
        [RESOLVER_EDITED] = "edited",   [RESOLVER_FOLLOW_UP] = "follow_up",
        [RESOLVER_REMOVED] = "removed", [RESOLVER_DISCARDED] = "discarded",
    };

    return names[what];
}
