/* Problem documents by the API's own table (problem.def), so that each code says what to do. */
#include "api/ctl/explain.h"

#include <string.h>

#include "api/ctl/answers.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "api/problem.h"
#include "common/core/buf.h"

/* Where the status alone does not tell the exit code, or the API's advice is for who calls it by
 * HTTP. */
static const struct {
    enum problem_id problem;
    int exit_code;      /* -1: the status tells it */
    const char *advice; /* NULL: the API's */
} by_problem[] = {
    {PROBLEM_KEY_REUSE, EXIT_CODE_CONFLICT, "Choose a new --id for a new message."},
    {PROBLEM_REQUEST_TIMEOUT, EXIT_CODE_UNAVAILABLE, NULL},
    {PROBLEM_BUSY, -1, "Try again in a moment; `outboxctl show` tells what it does."},
    {PROBLEM_NOT_FAILED, -1,
     "It is still under way, or parked, or has ended: `outboxctl show` tells."},
    {PROBLEM_CONTENDED, -1, "Try again."},
    {PROBLEM_WORKSPACE_NOT_FOUND, -1,
     "It begins with its first entry; `outboxctl workspaces` lists those that there are."},
    {PROBLEM_TARGET_NOT_FOUND, -1,
     "Its entries go to the configured target; `outboxctl target WORKSPACE URL` sets one."},
    {PROBLEM_SESSION_FULL, -1,
     "Try again when some of them are delivered, or raise session_cap; `outboxctl list` shows "
     "them."},
    {PROBLEM_STORE_UNAVAILABLE, -1,
     "Try again in a moment; `outboxctl doctor` looks for what is wrong with the store."},
    {PROBLEM_NOT_READY, -1, "`outboxctl status` tells when it is."},
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

static enum problem_id find_problem(const char *code)
{
    for (unsigned i = 0; i < PROBLEM_COUNT; i++) {
        if (strcmp(problem_get((enum problem_id)i)->code, code) == 0) {
            return (enum problem_id)i;
        }
    }
    return PROBLEM_NONE;
}

static int exit_code_of(enum problem_id problem, long status, const char **ret_advice)
{
    int exit_code = EXIT_CODE_FAILED;

    for (size_t i = 0; i < sizeof(by_status) / sizeof(by_status[0]); i++) {
        if (by_status[i].status == status) {
            exit_code = (int)by_status[i].exit_code;
            *ret_advice = by_status[i].advice ? by_status[i].advice : *ret_advice;
        }
    }
    for (size_t i = 0; i < sizeof(by_problem) / sizeof(by_problem[0]); i++) {
        if (by_problem[i].problem == problem) {
            exit_code = by_problem[i].exit_code >= 0 ? by_problem[i].exit_code : exit_code;
            *ret_advice = by_problem[i].advice ? by_problem[i].advice : *ret_advice;
        }
    }
    return exit_code;
}

static void add_line(struct buf *out, const char *text)
{
    print_safe(out, span_of(text));
    (void)buf_append_str(out, "\n");
}

/* No problem document: not outboxd itself. */
static int explain_stranger(long status, const char *server, struct buf *out)
{
    const char *advice = NULL;
    const int exit_code = exit_code_of(PROBLEM_NONE, status, &advice);

    (void)buf_appendf(out, "%s answered with HTTP status %ld; is that an outboxd?\n", server,
                      status);
    if (advice) {
        add_line(out, advice);
    }
    return exit_code;
}

int explain_problem(const json_t *problem, long status, const char *server, struct buf *out)
{
    const char *code = answer_text(problem, "code"), *detail = answer_text(problem, "detail");
    const char *title = answer_text(problem, "title");
    const enum problem_id id = find_problem(code);
    const char *api_advice = id != PROBLEM_NONE ? problem_get(id)->advice : "";
    const char *advice = api_advice[0] ? api_advice : NULL;

    if (!title[0]) {
        return explain_stranger(status, server, out);
    }
    const int exit_code = exit_code_of(id, status, &advice);

    print_safe(out, span_of(title));
    /* Where there is nothing to add, the API's advice is the detail. */
    if (detail[0] && strcmp(detail, api_advice) != 0) {
        (void)buf_append_str(out, ": ");
        print_safe(out, span_of(detail));
    }
    if (code[0]) {
        (void)buf_append_str(out, " [");
        print_safe(out, span_of(code));
        (void)buf_append_str(out, "]");
    }
    (void)buf_append_str(out, "\n");
    if (advice) {
        add_line(out, advice);
    }
    return exit_code;
}
