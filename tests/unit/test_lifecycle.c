/* The lifecycle: invariants over every (status, outcome) pair, then the contract's table of
 * outcomes row by row (§3). Nothing here expands the TRANSITION rows: the expectations are written
 * down anew. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/lifecycle.h"

static const struct lifecycle_limits limits = {
    .max_attempts = 5,
    .max_verify_attempts = 40,
    .max_transient_fails = 20,
    .retry_for_ms = 86400000,
    .retry_backoff_ms = 10000,
    .max_backoff_ms = 120000,
    .full_jitter = false,
    .verify_delay_ms = 3001,
    .verify_backoff_ms = 3000,
    .max_verify_backoff_ms = 120000,
    .repoll_after_ms = 15000,
};

static struct lifecycle_input input_of(enum outcome outcome)
{
    return (struct lifecycle_input){.outcome = outcome, .retry_after_ms = -1};
}

static struct lifecycle_step apply(struct lifecycle_state state, struct lifecycle_input input)
{
    struct lifecycle_step step;

    assert_int_equal(lifecycle_apply(&state, &input, &limits, &step), 0);
    return step;
}

static void check_step(const struct lifecycle_state *before, enum outcome outcome,
                       const struct lifecycle_step *step)
{
    const struct lifecycle_state *after = &step->state;
    bool is_error = after->status == STATUS_ERROR;
    bool is_over = is_error || after->status == STATUS_ENDED;

    assert_true((unsigned)after->status <= STATUS_ENDED);
    assert_int_not_equal(after->status, STATUS_PARKED); /* only a person parks */
    /* The end is confirmed, and only confirmed ends. */
    assert_int_equal(after->status == STATUS_ENDED, outcome == OUTCOME_CONFIRMED);
    assert_int_equal(step->event == EVENT_SENT, outcome == OUTCOME_CONFIRMED);
    assert_int_equal(step->event == EVENT_ERROR, is_error);
    assert_int_equal(step->code != CODE_NONE, is_error);
    assert_int_equal(step->delay_ms < 0,
                     is_over); /* nothing open is forgotten, nothing over comes again */
    /* A count never falls but for a new series of verifications, and at most one of the three
     * rises. */
    assert_true(after->attempts >= before->attempts);
    assert_true(after->transient_fails >= before->transient_fails);
    int rises = (after->attempts > before->attempts) +
                (after->transient_fails > before->transient_fails) +
                (after->verify_attempts > before->verify_attempts);
    assert_in_range(rises, 0, 1);
    if (outcome == OUTCOME_AMBIGUOUS) {
        assert_int_equal(after->verify_attempts, 0);
    } else {
        assert_true(after->verify_attempts >= before->verify_attempts);
    }
    /* An outcome that is unknown is verified, never sent again blindly: the rule that this program
     * is about. */
    if (outcome == OUTCOME_AMBIGUOUS || outcome == OUTCOME_INCONCLUSIVE) {
        assert_true(after->status == STATUS_VERIFYING || is_error);
    }
    /* Only a definite failure, or an idempotent kind's, is an attempt. */
    if (after->attempts > before->attempts) {
        assert_true(outcome == OUTCOME_RETRY || outcome == OUTCOME_REJECTED ||
                    outcome == OUTCOME_ABSENT);
    }
    if (after->transient_fails > before->transient_fails) {
        assert_int_equal(outcome, OUTCOME_TRANSIENT);
    }
}

static void every_pair_keeps_the_invariants_or_does_not_exist(void **state)
{
    static const uint32_t counts[] = {0, 1, 3, 4, 5, 18, 19, 20, 38, 39, 40, UINT32_MAX};
    unsigned found = 0;

    (void)state;
    for (unsigned s = 0; s <= STATUS_COUNT + 1; s++) {
        for (unsigned o = 0; o <= OUTCOME_COUNT + 1; o++) {
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                struct lifecycle_state before = {(enum entry_status)s, counts[c], counts[c],
                                                 counts[c]};
                struct lifecycle_input input = input_of((enum outcome)o);
                struct lifecycle_step step, untouched;

                memset(&step, 0x5a, sizeof(step));
                untouched = step;
                int err = lifecycle_apply(&before, &input, &limits, &step);
                if (err < 0) {
                    assert_int_equal(err, -EINVAL);
                    assert_memory_equal(&step, &untouched, sizeof(step));
                    continue;
                }
                assert_true(s < STATUS_COUNT && o < OUTCOME_COUNT);
                check_step(&before, (enum outcome)o, &step);
                found++;
            }
        }
    }
    assert_true(found > 0);
}

static void nothing_happens_to_error_and_parked_by_an_outcome(void **state)
{
    (void)state;
    for (unsigned o = 0; o < OUTCOME_COUNT; o++) {
        struct lifecycle_state error = {.status = STATUS_ERROR};
        struct lifecycle_state parked = {.status = STATUS_PARKED};
        struct lifecycle_input input = input_of((enum outcome)o);
        struct lifecycle_step step;

        assert_int_equal(lifecycle_apply(&error, &input, &limits, &step), -EINVAL);
        assert_int_equal(lifecycle_apply(&parked, &input, &limits, &step), -EINVAL);
    }
}

/* The contract's table: outcome, from, what follows with budget left. Counters rise by the last
 * three. */
static void each_row_of_the_contract_does_what_it_says(void **state)
{
    static const struct {
        enum entry_status from;
        enum outcome outcome;
        enum entry_status to;
        int64_t delay_ms;
        enum error_code code;
        enum entry_event event;
        uint32_t attempts, verify_attempts, transient_fails; /* afterwards; 2, 2, 2 before */
    } rows[] = {
        /* the target has it */
        {STATUS_DELIVERING, OUTCOME_CONFIRMED, STATUS_ENDED, -1, CODE_NONE, EVENT_SENT, 2, 2, 2},
        /* it may have it: verifying, verifyAttempts = 0, due after verify_delay, no attempt counted
         */
        {STATUS_DELIVERING, OUTCOME_AMBIGUOUS, STATUS_VERIFYING, 3001, CODE_NONE, EVENT_VERIFYING,
         2, 0, 2},
        /* idempotent: pending, attempt counted, backoff */
        {STATUS_DELIVERING, OUTCOME_RETRY, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 3, 2,
         2},
        {STATUS_DELIVERING, OUTCOME_REJECTED, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 3,
         2, 2},
        /* no attempt was made */
        {STATUS_DELIVERING, OUTCOME_TRANSIENT, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 2,
         2, 3},
        {STATUS_DELIVERING, OUTCOME_PRIOR_PENDING, STATUS_DELIVERING, 15000, CODE_NONE, EVENT_NONE,
         2, 2, 2},
        /* the attempt that the target owned is over, and the next one may go */
        {STATUS_DELIVERING, OUTCOME_ABSENT, STATUS_PENDING, 0, CODE_NONE, EVENT_RETRYING, 2, 2, 2},
        {STATUS_DELIVERING, OUTCOME_FAILED, STATUS_ERROR, -1, CODE_FROM_TARGET, EVENT_ERROR, 2, 2,
         2},
        {STATUS_DELIVERING, OUTCOME_CONFLICT, STATUS_ERROR, -1, CODE_CONFLICT, EVENT_ERROR, 2, 2,
         2},
        /* on_ambiguous: error */
        {STATUS_DELIVERING, OUTCOME_UNKNOWN, STATUS_ERROR, -1, CODE_OUTCOME_UNKNOWN, EVENT_ERROR, 2,
         2, 2},
        /* verification: delivered, absent, inconclusive, absent but too early */
        {STATUS_VERIFYING, OUTCOME_CONFIRMED, STATUS_ENDED, -1, CODE_NONE, EVENT_SENT, 2, 2, 2},
        {STATUS_VERIFYING, OUTCOME_ABSENT, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 3, 2,
         2},
        {STATUS_VERIFYING, OUTCOME_INCONCLUSIVE, STATUS_VERIFYING, 12000, CODE_NONE,
         EVENT_VERIFYING, 2, 3, 2},
        {STATUS_VERIFYING, OUTCOME_TOO_EARLY, STATUS_VERIFYING, 1234, CODE_NONE, EVENT_NONE, 2, 2,
         2},
        /* a ledger's row: the target still owns the attempt */
        {STATUS_VERIFYING, OUTCOME_PRIOR_PENDING, STATUS_DELIVERING, 15000, CODE_NONE, EVENT_NONE,
         2, 2, 2},
        {STATUS_PENDING, OUTCOME_PRIOR_PENDING, STATUS_DELIVERING, 15000, CODE_NONE, EVENT_NONE, 2,
         2, 2},
        {STATUS_PENDING, OUTCOME_REJECTED, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 3, 2,
         2},
        /* the kind became idempotent, or lost its look-up, while the entry was verifying */
        {STATUS_VERIFYING, OUTCOME_RETRY, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 3, 2,
         2},
        {STATUS_VERIFYING, OUTCOME_UNKNOWN, STATUS_ERROR, -1, CODE_OUTCOME_UNKNOWN, EVENT_ERROR, 2,
         2, 2},
        {STATUS_VERIFYING, OUTCOME_FAILED, STATUS_ERROR, -1, CODE_FROM_TARGET, EVENT_ERROR, 2, 2,
         2},
        /* the look-up before a re-send */
        {STATUS_PENDING, OUTCOME_CONFIRMED, STATUS_ENDED, -1, CODE_NONE, EVENT_SENT, 2, 2, 2},
        {STATUS_PENDING, OUTCOME_INCONCLUSIVE, STATUS_VERIFYING, 12000, CODE_NONE, EVENT_VERIFYING,
         2, 3, 2},
        {STATUS_PENDING, OUTCOME_TOO_EARLY, STATUS_PENDING, 1234, CODE_NONE, EVENT_NONE, 2, 2, 2},
        {STATUS_PENDING, OUTCOME_TRANSIENT, STATUS_PENDING, 40000, CODE_NONE, EVENT_RETRYING, 2, 2,
         3},
        {STATUS_PENDING, OUTCOME_FAILED, STATUS_ERROR, -1, CODE_FROM_TARGET, EVENT_ERROR, 2, 2, 2},
    };
    bool has_row[STATUS_COUNT][OUTCOME_COUNT] = {{false}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lifecycle_input input = input_of(rows[i].outcome);

        input.settle_left_ms = 1234;
        struct lifecycle_step step = apply((struct lifecycle_state){rows[i].from, 2, 2, 2}, input);
        assert_int_equal(step.state.status, rows[i].to);
        assert_true(step.delay_ms == rows[i].delay_ms);
        assert_int_equal(step.code, rows[i].code);
        assert_int_equal(step.event, rows[i].event);
        assert_int_equal(step.state.attempts, rows[i].attempts);
        assert_int_equal(step.state.verify_attempts, rows[i].verify_attempts);
        assert_int_equal(step.state.transient_fails, rows[i].transient_fails);
        has_row[rows[i].from][rows[i].outcome] = true;
    }
    /* And no transition beyond these: a new one needs a line here. */
    for (unsigned s = 0; s < STATUS_COUNT; s++) {
        for (unsigned o = 0; o < OUTCOME_COUNT; o++) {
            struct lifecycle_state before = {.status = (enum entry_status)s};
            struct lifecycle_input input = input_of((enum outcome)o);
            struct lifecycle_step step;

            assert_int_equal(lifecycle_apply(&before, &input, &limits, &step) == 0, has_row[s][o]);
        }
    }
}

static void a_budget_that_is_used_up_is_an_error_with_its_code(void **state)
{
    static const struct {
        enum entry_status from;
        enum outcome outcome;
        struct lifecycle_state last; /* the counters of the last try that is left */
        enum error_code code;
    } rows[] = {
        {STATUS_DELIVERING, OUTCOME_REJECTED, {.attempts = 4}, CODE_ATTEMPTS_EXHAUSTED},
        {STATUS_VERIFYING, OUTCOME_ABSENT, {.attempts = 4}, CODE_ATTEMPTS_EXHAUSTED},
        {STATUS_DELIVERING, OUTCOME_TRANSIENT, {.transient_fails = 19}, CODE_UNREACHABLE},
        {STATUS_PENDING, OUTCOME_TRANSIENT, {.transient_fails = 19}, CODE_UNREACHABLE},
        {STATUS_VERIFYING, OUTCOME_INCONCLUSIVE, {.verify_attempts = 39}, CODE_UNVERIFIABLE},
        {STATUS_PENDING, OUTCOME_INCONCLUSIVE, {.verify_attempts = 39}, CODE_UNVERIFIABLE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lifecycle_state before = rows[i].last;

        before.status = rows[i].from;
        struct lifecycle_step step = apply(before, input_of(rows[i].outcome));
        assert_int_equal(step.state.status, STATUS_ERROR);
        assert_int_equal(step.code, rows[i].code);
        assert_int_equal(step.event, EVENT_ERROR);
        assert_true(step.delay_ms < 0);

        before = (struct lifecycle_state){.status = rows[i].from};
        before.attempts = rows[i].last.attempts ? rows[i].last.attempts - 1 : 0;
        before.transient_fails =
            rows[i].last.transient_fails ? rows[i].last.transient_fails - 1 : 0;
        before.verify_attempts =
            rows[i].last.verify_attempts ? rows[i].last.verify_attempts - 1 : 0;
        assert_int_not_equal(apply(before, input_of(rows[i].outcome)).state.status, STATUS_ERROR);
    }
}

static void idempotent_entries_are_bounded_by_time_not_by_number(void **state)
{
    struct lifecycle_state before = {.status = STATUS_DELIVERING, .attempts = 1000};
    struct lifecycle_input input = input_of(OUTCOME_RETRY);
    struct lifecycle_limits forever = limits;
    struct lifecycle_step step;

    (void)state;
    input.since_first_claim_ms = limits.retry_for_ms - 1;
    assert_int_equal(apply(before, input).state.status, STATUS_PENDING);
    assert_true(apply(before, input).delay_ms == limits.max_backoff_ms);
    input.since_first_claim_ms = limits.retry_for_ms;
    assert_int_equal(apply(before, input).state.status, STATUS_ERROR);
    assert_int_equal(apply(before, input).code, CODE_RETRIES_EXHAUSTED);
    assert_int_equal(apply(before, input).state.attempts, 1001);
    forever.retry_for_ms = 0;
    input.since_first_claim_ms = INT64_MAX;
    assert_int_equal(lifecycle_apply(&before, &input, &forever, &step), 0);
    assert_int_equal(step.state.status, STATUS_PENDING);
}

static void retry_after_is_a_floor_for_every_backoff(void **state)
{
    static const enum outcome outcomes[] = {OUTCOME_RETRY, OUTCOME_REJECTED};
    struct lifecycle_limits jittered = limits;
    struct lifecycle_state before = {.status = STATUS_DELIVERING};

    (void)state;
    jittered.full_jitter = true;
    for (size_t i = 0; i < 2; i++) {
        struct lifecycle_input input = input_of(outcomes[i]);
        struct lifecycle_step step;

        input.retry_after_ms = 777000;
        assert_true(apply(before, input).delay_ms == 777000);
        for (uint32_t random = 0; random < 4000000000u; random += 400000000u) {
            input.random = random;
            input.retry_after_ms = 777000;
            assert_int_equal(lifecycle_apply(&before, &input, &jittered, &step), 0);
            assert_true(step.delay_ms >= 777000 && step.delay_ms <= 787000);
            input.retry_after_ms = -1;
            assert_int_equal(lifecycle_apply(&before, &input, &jittered, &step), 0);
            assert_true(step.delay_ms >= 0 && step.delay_ms <= 10000);
        }
    }
}

static void verifications_double_and_do_not_jitter(void **state)
{
    static const int64_t expected[] = {3000, 6000, 12000, 24000, 48000, 96000, 120000, 120000};

    (void)state;
    for (uint32_t made = 0; made < 8; made++) {
        struct lifecycle_state before = {.status = STATUS_VERIFYING, .verify_attempts = made};
        struct lifecycle_input input = input_of(OUTCOME_INCONCLUSIVE);

        input.random = 99;
        assert_true(apply(before, input).delay_ms == expected[made]);
    }
}

static void counters_stop_at_their_end(void **state)
{
    struct lifecycle_state before = {STATUS_DELIVERING, UINT32_MAX, UINT32_MAX, UINT32_MAX};

    (void)state;
    assert_true(apply(before, input_of(OUTCOME_RETRY)).state.attempts == UINT32_MAX);
    assert_int_equal(apply(before, input_of(OUTCOME_TRANSIENT)).code, CODE_UNREACHABLE);
}

static void names_are_those_of_the_contract_and_read_back(void **state)
{
    static const char *const statuses[] = {"pending", "delivering", "verifying", "error", "parked"};

    (void)state;
    assert_int_equal(STATUS_COUNT, 5);
    for (unsigned s = 0; s < STATUS_COUNT; s++) {
        enum entry_status back = STATUS_COUNT;

        assert_string_equal(entry_status_name((enum entry_status)s), statuses[s]);
        assert_int_equal(entry_status_from_name(statuses[s], strlen(statuses[s]), &back), 0);
        assert_int_equal(back, s);
        assert_int_equal(entry_status_from_name(statuses[s], strlen(statuses[s]) - 1, &back),
                         -EINVAL);
    }
    assert_string_equal(entry_status_name(STATUS_ENDED), "invalid");
    assert_string_equal(outcome_name(OUTCOME_PRIOR_PENDING), "prior-pending");
    assert_string_equal(outcome_name(OUTCOME_COUNT), "invalid");
    assert_string_equal(outcome_name((enum outcome)9999), "invalid");
    assert_string_equal(error_code_name(CODE_UNVERIFIABLE), "unverifiable");
    assert_string_equal(error_code_name(CODE_FROM_TARGET), "invalid");
    enum entry_status back;
    assert_int_equal(entry_status_from_name("", 0, &back), -EINVAL);
    assert_int_equal(entry_status_from_name("sent", 4, &back), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_keeps_the_invariants_or_does_not_exist),
        cmocka_unit_test(nothing_happens_to_error_and_parked_by_an_outcome),
        cmocka_unit_test(each_row_of_the_contract_does_what_it_says),
        cmocka_unit_test(a_budget_that_is_used_up_is_an_error_with_its_code),
        cmocka_unit_test(idempotent_entries_are_bounded_by_time_not_by_number),
        cmocka_unit_test(retry_after_is_a_floor_for_every_backoff),
        cmocka_unit_test(verifications_double_and_do_not_jitter),
        cmocka_unit_test(counters_stop_at_their_end),
        cmocka_unit_test(names_are_those_of_the_contract_and_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
