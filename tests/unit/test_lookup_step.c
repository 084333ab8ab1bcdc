/* What follows from a look-up's verdict: contract §3 Verify. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/lookup_step.h"

static const enum lookup_reason reasons[] = {LOOKUP_FOR_CLAIMED_SEND, LOOKUP_FOR_RESEND,
                                             LOOKUP_FOR_VERIFYING, LOOKUP_FOR_POLL};
#define REASON_COUNT (sizeof(reasons) / sizeof(reasons[0]))

static void whatever_it_was_asked_for_delivered_is_confirmed(void **state)
{
    (void)state;
    for (size_t i = 0; i < REASON_COUNT; i++) {
        const struct lookup_step step = lookup_step(reasons[i], LOOKUP_DELIVERED, true);

        assert_int_equal(step.then, LOOKUP_THEN_RECORD);
        assert_int_equal(step.outcome, OUTCOME_CONFIRMED);
        assert_false(step.must_settle);
    }
}

static void only_absence_leads_to_a_request_and_only_once_it_has_settled(void **state)
{
    (void)state;
    for (size_t i = 0; i < REASON_COUNT; i++) {
        for (int verdict = LOOKUP_DELIVERED; verdict <= LOOKUP_BROKEN; verdict++) {
            const struct lookup_step step =
                lookup_step(reasons[i], (enum lookup_verdict)verdict, true);

            if (step.then != LOOKUP_THEN_RECORD) {
                assert_int_equal(verdict, LOOKUP_ABSENT);
                assert_true(step.must_settle);
            }
        }
    }
    assert_int_equal(lookup_step(LOOKUP_FOR_RESEND, LOOKUP_ABSENT, true).then,
                     LOOKUP_THEN_BEGIN_SEND);
    assert_int_equal(lookup_step(LOOKUP_FOR_CLAIMED_SEND, LOOKUP_ABSENT, true).then,
                     LOOKUP_THEN_REQUEST);
    assert_true(lookup_step(LOOKUP_FOR_VERIFYING, LOOKUP_ABSENT, true).must_settle);
}

static void no_proof_never_counts_an_attempt(void **state)
{
    (void)state;
    assert_int_equal(lookup_step(LOOKUP_FOR_CLAIMED_SEND, LOOKUP_INCONCLUSIVE, true).outcome,
                     OUTCOME_AMBIGUOUS);
    assert_int_equal(lookup_step(LOOKUP_FOR_RESEND, LOOKUP_INCONCLUSIVE, true).outcome,
                     OUTCOME_INCONCLUSIVE);
    assert_int_equal(lookup_step(LOOKUP_FOR_VERIFYING, LOOKUP_INCONCLUSIVE, false).outcome,
                     OUTCOME_INCONCLUSIVE);
    assert_int_equal(lookup_step(LOOKUP_FOR_POLL, LOOKUP_INCONCLUSIVE, false).outcome,
                     OUTCOME_PRIOR_PENDING);
}

static void a_target_that_is_away_makes_nothing_unknown_that_was_known(void **state)
{
    (void)state;
    assert_int_equal(lookup_step(LOOKUP_FOR_RESEND, LOOKUP_INCONCLUSIVE, false).outcome,
                     OUTCOME_TRANSIENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_it_was_asked_for_delivered_is_confirmed),
        cmocka_unit_test(only_absence_leads_to_a_request_and_only_once_it_has_settled),
        cmocka_unit_test(no_proof_never_counts_an_attempt),
        cmocka_unit_test(a_target_that_is_away_makes_nothing_unknown_that_was_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
