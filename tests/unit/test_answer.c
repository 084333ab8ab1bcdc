/* The table of answers, row by row as the contract has it (§4), for both sorts of kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "worker/answer.h"

static enum outcome read_answer(int status, const char *code, bool is_complete, bool is_idempotent)
{
    const struct answer answer = {
        .is_started = true,
        .status = status,
        .is_complete = is_complete,
        .problem_code = span_of(code),
    };

    return answer_read(&answer, is_idempotent).outcome;
}

static void every_status_is_read_as_the_contract_says(void **state)
{
    static const struct {
        int status;
        const char *code;
        enum outcome idempotent, other;
    } rows[] = {
        {200, "", OUTCOME_CONFIRMED, OUTCOME_CONFIRMED},
        {201, "", OUTCOME_CONFIRMED, OUTCOME_CONFIRMED},
        {204, "", OUTCOME_CONFIRMED, OUTCOME_CONFIRMED},
        {299, "", OUTCOME_CONFIRMED, OUTCOME_CONFIRMED},
        {425, "", OUTCOME_RETRY, OUTCOME_REJECTED},
        {429, "", OUTCOME_RETRY, OUTCOME_REJECTED},
        {429, "setup_required", OUTCOME_RETRY, OUTCOME_REJECTED},
        {503, "", OUTCOME_RETRY, OUTCOME_REJECTED},
        {503, "maintenance", OUTCOME_RETRY, OUTCOME_REJECTED},
        {503, "setup_required", OUTCOME_FAILED, OUTCOME_FAILED},
        {408, "", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {409, "request_in_progress", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {409, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {409, "edit_conflict", OUTCOME_FAILED, OUTCOME_FAILED},
        {500, "", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {501, "", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {502, "", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {504, "", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {599, "", OUTCOME_RETRY, OUTCOME_AMBIGUOUS},
        {412, "", OUTCOME_CONFLICT, OUTCOME_CONFLICT},
        {300, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {301, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {302, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {307, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {400, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {401, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {403, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {404, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {405, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {410, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {413, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {415, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {418, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {422, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {428, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {600, "", OUTCOME_FAILED, OUTCOME_FAILED},
        {999, "", OUTCOME_FAILED, OUTCOME_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const enum outcome idempotent = read_answer(rows[i].status, rows[i].code, true, true);
        const enum outcome other = read_answer(rows[i].status, rows[i].code, true, false);

        if (idempotent != rows[i].idempotent || other != rows[i].other) {
            fail_msg("%d %s: %s, %s", rows[i].status, rows[i].code, outcome_name(idempotent),
                     outcome_name(other));
        }
    }
}

static void no_answer_depends_on_whether_the_request_began(void **state)
{
    const struct answer before = {.is_started = false};
    const struct answer after = {.is_started = true};

    (void)state;
    assert_int_equal(answer_read(&before, true).outcome, OUTCOME_RETRY);
    assert_int_equal(answer_read(&before, false).outcome, OUTCOME_TRANSIENT);
    assert_int_equal(answer_read(&after, true).outcome, OUTCOME_RETRY);
    assert_int_equal(answer_read(&after, false).outcome, OUTCOME_AMBIGUOUS);
}

static void the_status_line_decides_when_the_body_was_cut(void **state)
{
    (void)state;
    assert_int_equal(read_answer(200, "", false, false), OUTCOME_CONFIRMED);
    assert_int_equal(read_answer(503, "", false, false), OUTCOME_REJECTED);
    /* Its code may have been request_in_progress: not final. */
    assert_int_equal(read_answer(409, "", false, false), OUTCOME_AMBIGUOUS);
    assert_int_equal(read_answer(409, "", false, true), OUTCOME_RETRY);
}

static void retry_after_is_honoured_where_another_try_is_worth_it(void **state)
{
    static const struct {
        int status;
        bool honoured;
    } rows[] = {{425, true}, {429, true}, {503, true}, {200, false}, {404, false}, {412, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct answer answer = {
            .is_started = true, .status = rows[i].status, .is_complete = true};

        assert_int_equal(answer_read(&answer, true).honours_retry_after, rows[i].honoured);
        assert_int_equal(answer_read(&answer, false).honours_retry_after, rows[i].honoured);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_is_read_as_the_contract_says),
        cmocka_unit_test(no_answer_depends_on_whether_the_request_began),
        cmocka_unit_test(the_status_line_decides_when_the_body_was_cut),
        cmocka_unit_test(retry_after_is_honoured_where_another_try_is_worth_it),
    };

    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
