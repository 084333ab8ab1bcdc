/* Restart, delivery, people's help for what failed; and what must hold along the way. */
#include "tests/store/crash/ending.h"

#include <stdio.h>
#include <string.h>

#include "tests/store/crash/look.h"
#include "tests/store/crash/work.h"

#define ROUNDS_MAX       10
#define RETRY_FROM_ROUND 2 /* workers come first */
#define ANY_PROCESS      "node."

static void check_store(struct hand *hand, const char *when)
{
    char why[200];
    uint32_t mended = 0;

    if (!sync_invariants_hold(hand->s, why, sizeof(why))) {
        journal_fail(hand->journal, "%s: %s", when, why);
    }
    hand_audit(hand, &mended);
    if (mended > 0) {
        journal_fail(hand->journal, "%s: a claim would not have found everything", when);
    }
}

static unsigned count_state(const struct hand *hand, enum journal_state state)
{
    unsigned count = 0;

    for (unsigned i = 0; i < hand->journal->count; i++) {
        count += hand->journal->entries[i].state == state;
    }
    return count;
}

static bool is_over(const struct hand *hand)
{
    return count_state(hand, JOURNAL_WAITING) + count_state(hand, JOURNAL_DELIVERING) +
               count_state(hand, JOURNAL_FAILED) + count_state(hand, JOURNAL_PARKED) ==
           0;
}

/* The supervisor at its start, then its periodic pass. */
static void restart(struct hand *hand, struct gate *gate, const struct gate_command *late)
{
    hand_recover(hand, ANY_PROCESS);
    hand->look(hand);
    if (late) {
        gate_execute(gate, late);
        hand->look(hand);
        hand_recover(hand, ANY_PROCESS);
        hand->look(hand);
    }
    check_store(hand, "after the restart");
}

static void retry_what_failed(struct hand *hand)
{
    const unsigned count = hand->journal->count;

    for (unsigned i = 0; i < count; i++) {
        if (hand->journal->entries[i].state == JOURNAL_FAILED) {
            hand_operate(hand, RESOLVER_RETRY, hand->journal->entries[i].id, "");
            hand->look(hand);
        }
    }
}

static void deliver(struct hand *hand)
{
    static const struct work_plan plan = {.first = TARGET_CONFIRMS, .claims = 4};

    for (unsigned round = 0; round < ROUNDS_MAX && !is_over(hand); round++) {
        hand->pass_time(hand, AN_HOUR_MS);
        work(hand, &plan, NULL);
        hand->look(hand);
        if (round >= RETRY_FROM_ROUND) {
            retry_what_failed(hand);
        }
    }
}

void ending_run(struct hand *hand, struct gate *gate, const struct gate_command *late)
{
    check_store(hand, "when all stopped");
    restart(hand, gate, late);
    hand_pause(hand, false);
    if (count_state(hand, JOURNAL_PARKED) > 0) {
        hand_walk(hand, WALK_UNPARK);
    }
    hand->look(hand);
    deliver(hand);
    hand->pass_time(hand, AN_HOUR_MS);
    work(hand, &(struct work_plan){.claims = 1}, NULL); /* a cleanup's hold ends with a claim */
    check_store(hand, "at the end");
    journal_check_end(hand->journal, hand->settings);
    const char *left = look_leftovers(hand->s);

    if (left[0] != '\0') {
        journal_fail(hand->journal, "left behind: %.200s", left);
    }
}
