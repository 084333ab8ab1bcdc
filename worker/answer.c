/* The table of answers. Rows are tried from top to bottom; the first that fits decides. Pure. */
#include "worker/answer.h"

#include <stddef.h>

enum answer_class {
    CLASS_CONFIRMED,   /* the target has it */
    CLASS_TRY_LATER,   /* refused, worth another try */
    CLASS_UNPROVEN,    /* proves nothing about what was stored */
    CLASS_CONFLICT,    /* 412 */
    CLASS_FINAL,       /* refused for good */
    CLASS_BROKEN,      /* no answer, after the request began */
    CLASS_NOT_STARTED, /* no answer, before the request began */
};

/* What each class is to either sort of kind. */
static const struct {
    enum outcome idempotent, other;
    bool honours_retry_after;
} outcomes[] = {
    [CLASS_CONFIRMED] = {OUTCOME_CONFIRMED, OUTCOME_CONFIRMED, false},
    [CLASS_TRY_LATER] = {OUTCOME_RETRY, OUTCOME_REJECTED, true},
    [CLASS_UNPROVEN] = {OUTCOME_RETRY, OUTCOME_AMBIGUOUS, true},
    [CLASS_CONFLICT] = {OUTCOME_CONFLICT, OUTCOME_CONFLICT, false},
    [CLASS_FINAL] = {OUTCOME_FAILED, OUTCOME_FAILED, false},
    [CLASS_BROKEN] = {OUTCOME_RETRY, OUTCOME_AMBIGUOUS, false},
    [CLASS_NOT_STARTED] = {OUTCOME_RETRY, OUTCOME_TRANSIENT, false},
};

struct row {
    int from, to;     /* status, inclusive */
    const char *code; /* problem code; NULL: any */
    enum answer_class class;
};
static const struct row rows[] = {
    {200, 299, NULL, CLASS_CONFIRMED},
    {408, 408, NULL, CLASS_UNPROVEN},
    {409, 409, "request_in_progress", CLASS_UNPROVEN},
    {412, 412, NULL, CLASS_CONFLICT},
    {425, 425, NULL, CLASS_TRY_LATER},
    {429, 429, NULL, CLASS_TRY_LATER},
    {503, 503, "setup_required", CLASS_FINAL},
    {503, 503, NULL, CLASS_TRY_LATER},
    {500, 599, NULL, CLASS_UNPROVEN},
};

static enum answer_class class_of(const struct answer *answer)
{
    if (answer->status == 0) {
        return answer->is_started ? CLASS_BROKEN : CLASS_NOT_STARTED;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];

        if (answer->status >= row->from && answer->status <= row->to &&
            (!row->code || span_equal(answer->problem_code, span_of(row->code)))) {
            return row->class;
        }
    }
    /* A 409 whose body was cut may have been `request_in_progress`. */
    if (answer->status == 409 && !answer->is_complete) {
        return CLASS_UNPROVEN;
    }
    return CLASS_FINAL;
}

struct answer_reading answer_read(const struct answer *answer, bool is_idempotent)
{
    const enum answer_class class = class_of(answer);

    return (struct answer_reading){
        .outcome = is_idempotent ? outcomes[class].idempotent : outcomes[class].other,
        .honours_retry_after = outcomes[class].honours_retry_after,
    };
}
