/* Problem documents from the table. */
#include "api/problem.h"

#include "api/json_out.h"

static const struct problem problems[PROBLEM_COUNT] = {
#define PROBLEM(id, status_, code_, title_, advice_)                                               \
    [PROBLEM_##id] = {.status = status_, .code = code_, .title = title_, .advice = advice_},
#include "api/problem.def"
};

const struct problem *problem_get(enum problem_id id)
{
    return &problems[(unsigned)id < PROBLEM_COUNT ? id : PROBLEM_INTERNAL];
}

void problem_open(enum problem_id id, struct span detail, struct buf *out)
{
    const struct problem *problem = problem_get(id);

    json_open(out, '{');
    (void)buf_appendf(out, "\"type\":\"/problems/%s\",", problem->code);
    json_member_string(out, "title", span_of(problem->title));
    json_member_i64(out, "status", problem->status);
    json_member_string(out, "code", span_of(problem->code));
    json_member_string(out, "detail", detail.len > 0 ? detail : span_of(problem->advice));
}

void problem_write(enum problem_id id, struct span detail, struct buf *out)
{
    problem_open(id, detail, out);
    json_close(out, '}');
}
