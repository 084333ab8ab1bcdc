/* What a ledger's answers and rows come to. The expectations are written down from the contract
 * (§4, §5), as rules over every pair, not as the table once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/ledger_rows.h"
#include "worker/sweep_step.h"

static enum ledger_row read(int status, const char *body)
{
    return ledger_answer_read(status, span_of(body));
}

static void every_state_is_read_bare_and_wrapped(void **state)
{
    static const struct {
        const char *bare, *wrapped;
        enum ledger_row row;
    } rows[] = {
#define BOTH(name, row_)                                                                           \
    {"{\"state\":\"LEDGER_STATE_" name "\"}",                                                      \
     "{\"message\":{\"state\":\"LEDGER_STATE_" name "\"}}", LEDGER_ROW_##row_}
        BOTH("LEDGERED", LEDGERED),   BOTH("ADMITTED", COMPLETE), BOTH("PROMOTED", COMPLETE),
        BOTH("TURN_ENDED", COMPLETE), BOTH("STALLED", COMPLETE),  BOTH("FAILED", FAILED),
        BOTH("UNSPECIFIED", ABSENT),  BOTH("COMPLETED", UNKNOWN), BOTH("", UNKNOWN),
#undef BOTH
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(read(200, rows[i].bare), rows[i].row);
        assert_int_equal(read(200, rows[i].wrapped), rows[i].row);
    }
}

static void other_states_never_complete(void **state)
{
    (void)state;
    assert_int_equal(read(200, "{\"state\":\"admitted\"}"), LEDGER_ROW_UNKNOWN);
    assert_int_equal(read(200, "{\"state\":2}"), LEDGER_ROW_UNKNOWN);
    assert_int_equal(read(200, "{\"state\":{}}"), LEDGER_ROW_UNKNOWN);
    assert_int_equal(read(200, "{\"state\":true,\"message\":{\"state\":\"LEDGER_STATE_FAILED\"}}"),
                     LEDGER_ROW_UNKNOWN);
}

static void no_state_is_no_row(void **state)
{
    (void)state;
    assert_int_equal(read(200, "{}"), LEDGER_ROW_ABSENT);
    assert_int_equal(read(200, "{\"entryId\":\"e\",\"attempt\":3}"), LEDGER_ROW_ABSENT);
    assert_int_equal(read(200, "{\"message\":{}}"), LEDGER_ROW_ABSENT);
    assert_int_equal(read(200, "{\"state\":null}"), LEDGER_ROW_ABSENT);
    assert_int_equal(read(404, "{\"code\":\"not_found\",\"message\":\"no such row\"}"),
                     LEDGER_ROW_ABSENT);
}

static void what_cannot_be_read_proves_nothing(void **state)
{
    static const struct {
        int status;
        const char *body;
    } rows[] = {
        {0, ""},
        {200, ""},
        {200, "<html>"},
        {200, "[]"},
        {200, "\"LEDGER_STATE_FAILED\""},
        {200, "{\"state\":\"LEDGER_STATE_FAI"},
        {200, "{\"code\":\"internal\"}"},
        {200, "{\"error\":{\"code\":\"not_found\"}}"},
        {404, ""},
        {404, "not found"},
        {404, "{\"code\":\"unimplemented\"}"},
        {404, "{\"code\":404}"},
        {404, "{\"state\":\"LEDGER_STATE_ADMITTED\"}"},
        {500, "{\"code\":\"not_found\"}"},
        {500, "{\"state\":\"LEDGER_STATE_ADMITTED\"}"},
        {302, "{\"state\":\"LEDGER_STATE_FAILED\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(read(rows[i].status, rows[i].body), LEDGER_ROW_UNREAD);
    }
}

static bool is_known(enum ledger_row row)
{
    return row != LEDGER_ROW_UNKNOWN && row != LEDGER_ROW_UNREAD;
}

static void every_pair_of_rows_has_the_contracts_verdict(void **state)
{
    (void)state;
    for (enum ledger_row last = 0; last < LEDGER_ROW_COUNT; last++) {
        for (enum ledger_row next = 0; next < LEDGER_ROW_COUNT; next++) {
            const enum lookup_verdict verdict = ledger_rows_verdict(last, next);

            if (last == LEDGER_ROW_COMPLETE || next == LEDGER_ROW_COMPLETE) {
                assert_int_equal(verdict, LOOKUP_DELIVERED);
            } else if (last == LEDGER_ROW_LEDGERED || next == LEDGER_ROW_LEDGERED) {
                assert_int_equal(verdict, LOOKUP_PRIOR_PENDING);
            } else if (!is_known(last) || !is_known(next)) {
                assert_int_equal(verdict, LOOKUP_INCONCLUSIVE);
            } else {
                assert_int_equal(verdict,
                                 next == LEDGER_ROW_FAILED ? LOOKUP_REFUSED : LOOKUP_ABSENT);
            }
        }
    }
}

static void a_row_beyond_the_budget_holds_what_it_says(void **state)
{
    (void)state;
    for (enum lookup_verdict both = LOOKUP_DELIVERED; both < LOOKUP_BROKEN; both++) {
        const bool is_free = both == LOOKUP_ABSENT || both == LOOKUP_REFUSED;

        assert_int_equal(ledger_rows_with_beyond(both, LEDGER_ROW_COMPLETE), LOOKUP_DELIVERED);
        assert_int_equal(ledger_rows_with_beyond(both, LEDGER_ROW_LEDGERED),
                         both == LOOKUP_DELIVERED ? both : LOOKUP_PRIOR_PENDING);
        assert_int_equal(ledger_rows_with_beyond(both, LEDGER_ROW_FAILED), both);
        assert_int_equal(ledger_rows_with_beyond(both, LEDGER_ROW_ABSENT), both);
        assert_int_equal(ledger_rows_with_beyond(both, LEDGER_ROW_UNREAD),
                         is_free ? LOOKUP_INCONCLUSIVE : both);
        assert_int_equal(ledger_rows_with_beyond(both, LEDGER_ROW_UNKNOWN),
                         is_free ? LOOKUP_INCONCLUSIVE : both);
    }
}

static struct sweep_step sweep(bool is_ledger, bool is_unverifiable, uint32_t attempts,
                               enum lookup_verdict verdict)
{
    const struct sweep_subject subject = {is_ledger, is_unverifiable, attempts, 5};

    return sweep_step(&subject, verdict);
}

static void expect(struct sweep_step step, enum sweep_action action, uint32_t attempts)
{
    assert_int_equal(step.action, action);
    assert_int_equal(step.attempts, attempts);
}

static void a_sweep_completes_waits_or_learns_nothing_whatever_the_error_was(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const bool is_ledger = i & 1, is_unverifiable = i & 2;
        const uint32_t attempts = i & 4 ? 5 : 1;

        expect(sweep(is_ledger, is_unverifiable, attempts, LOOKUP_DELIVERED), SWEEP_COMPLETE,
               attempts);
        expect(sweep(is_ledger, is_unverifiable, attempts, LOOKUP_PRIOR_PENDING), SWEEP_STAY,
               attempts);
        expect(sweep(is_ledger, is_unverifiable, attempts, LOOKUP_INCONCLUSIVE),
               SWEEP_NOTHING_KNOWN, attempts);
        expect(sweep(is_ledger, is_unverifiable, attempts, LOOKUP_BROKEN), SWEEP_NOTHING_KNOWN,
               attempts);
    }
}

static void a_failed_row_is_adopted_and_the_budget_decides(void **state)
{
    (void)state;
    expect(sweep(true, false, 3, LOOKUP_REFUSED), SWEEP_TO_PENDING, 4);
    expect(sweep(true, false, 4, LOOKUP_REFUSED), SWEEP_STAY, 5);
    expect(sweep(true, false, 5, LOOKUP_REFUSED), SWEEP_STAY, 6);
    expect(sweep(true, false, 4, LOOKUP_ABSENT), SWEEP_TO_PENDING, 4);
    expect(sweep(true, false, 5, LOOKUP_ABSENT), SWEEP_STAY, 5);
    expect(sweep(true, false, UINT32_MAX, LOOKUP_REFUSED), SWEEP_STAY, UINT32_MAX);
}

static void what_was_unverifiable_is_verified_first(void **state)
{
    (void)state;
    expect(sweep(true, true, 3, LOOKUP_REFUSED), SWEEP_TO_VERIFYING, 3);
    expect(sweep(true, true, 4, LOOKUP_REFUSED), SWEEP_STAY, 5);
    expect(sweep(true, true, 4, LOOKUP_ABSENT), SWEEP_TO_VERIFYING, 4);
    expect(sweep(true, true, 5, LOOKUP_ABSENT), SWEEP_STAY, 5);
    expect(sweep(false, true, 4, LOOKUP_ABSENT), SWEEP_TO_VERIFYING, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_is_read_bare_and_wrapped),
        cmocka_unit_test(other_states_never_complete),
        cmocka_unit_test(no_state_is_no_row),
        cmocka_unit_test(what_cannot_be_read_proves_nothing),
        cmocka_unit_test(every_pair_of_rows_has_the_contracts_verdict),
        cmocka_unit_test(a_row_beyond_the_budget_holds_what_it_says),
        cmocka_unit_test(a_sweep_completes_waits_or_learns_nothing_whatever_the_error_was),
        cmocka_unit_test(a_failed_row_is_adopted_and_the_budget_decides),
        cmocka_unit_test(what_was_unverifiable_is_verified_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
