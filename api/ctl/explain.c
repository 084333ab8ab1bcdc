/* Problem documents by the API's own table (problem.def), so that each code says what to do. */
#include "api/ctl/explain.h"

#include <string.h>

#include "api/ctl/answers.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "api/problem.h"
#include "common/core/buf.h"

/* Where the status alone does not say it. */
static const struct {
    const char *code;
    enum exit_code exit_code;
} by_code[] = {
    {"idempotency_key_reuse", EXIT_CODE_CONFLICT},
    {"request_timeout", EXIT_CODE_UNAVAILABLE},
};

static const struct {
    long status;
    enum exit_code exit_code;
    const char *advice; /* NULL: the code's own */
} by_status[] = {
    {401, EXIT_CODE_DENIED,
     "The server wants a token: put it into a file of your own and name that in "
     "OUTBOXCTL_TOKEN_FILE."},
    {403, EXIT_CODE_DENIED,
     "The token's role, or the workspaces it is for, do not allow this: use another one "
     "(OUTBOXCTL_TOKEN_FILE)."},
    {404, EXIT_CODE_NOT_FOUND, NULL},
    {409, EXIT_CODE_CONFLICT, NULL},
    {429, EXIT_CODE_UNAVAILABLE, NULL},
    {502, EXIT_CODE_UNREACHABLE, "A proxy before outboxd says so: it cannot reach it."},
    {503, EXIT_CODE_UNAVAILABLE, NULL},
    {504, EXIT_CODE_UNREACHABLE, "A proxy before outboxd says so: it gets no answer."},
};

static const struct problem *find_problem(const char *code)
{
    for (unsigned i = 0; i < PROBLEM_COUNT; i++) {
        const struct problem *problem = problem_get((enum problem_id)i);

        if (strcmp(problem->code, code) == 0) {
            return problem;
        }
    }
    return NULL;
}

static int exit_code_of(const char *code, long status, const char **ret_advice)
{
    int exit_code = EXIT_CODE_FAILED;

    for (size_t i = 0; i < sizeof(by_status) / sizeof(by_status[0]); i++) {
        if (by_status[i].status == status) {
            exit_code = by_status[i].exit_code;
            *ret_advice = by_status[i].advice ? by_status[i].advice : *ret_advice;
        }
    }
    for (size_t i = 0; i < sizeof(by_code) / sizeof(by_code[0]); i++) {
        if (strcmp(by_code[i].code, code) == 0) {
            return by_code[i].exit_code;
        }
    }
    return exit_code;
}

static void add_line(struct buf *out, const char *text)
{
    print_safe(out, span_of(text));
    (void)buf_append_str(out, "\n");
}

int explain_problem(const json_t *problem, long status, const char *server, struct buf *out)
{
    const char *code = answer_text(problem, "code"), *detail = answer_text(problem, "detail");
    const char *title = answer_text(problem, "title");
    const struct problem *known = find_problem(code);
    const char *advice = known ? known->advice : NULL;
    const int exit_code = exit_code_of(code, status, &advice);

    if (!title[0]) {
        (void)buf_appendf(out, "%s answered with HTTP status %ld; is that an outboxd?\n", server,
                          status);
        if (status != 401 && status != 403 && exit_code != EXIT_CODE_UNAVAILABLE) {
            advice = status == 502 || status == 504 ? advice : NULL;
        }
    } else {
        print_safe(out, span_of(title));
        if (detail[0] && !(advice && strcmp(detail, advice) == 0)) {
            (void)buf_append_str(out, ": ");
            print_safe(out, span_of(detail));
        }
        if (code[0]) {
            (void)buf_append_str(out, " [");
            print_safe(out, span_of(code));
            (void)buf_append_str(out, "]");
        }
        (void)buf_append_str(out, "\n");
    }
    if (advice) {
        add_line(out, advice);
    }
    return exit_code;
}
