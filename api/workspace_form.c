#include "api/workspace_form.h"

static const char *const sweeps[SWEEP_WHAT_COUNT] = {
    [SWEEP_WHAT_UNVERIFIABLE] = "unverifiable",
    [SWEEP_WHAT_PARKED_ERRORS] = "parked-errors",
};

/* An object whose only member, if any, is this text. */
static enum problem_id read_only_text(struct span text, struct json_body *body, const char *name,
                                      size_t max, struct span *ret)
{
    const char *const names[] = {name};
    enum problem_id problem = json_body_parse(body, text);

    problem = problem != PROBLEM_NONE ? problem : json_body_check_names(body, names, 1);
    return problem != PROBLEM_NONE ? problem
                                   : json_body_text(body, name, max, PROBLEM_INVALID_MEMBER, ret);
}

enum problem_id park_form_read(struct span text, struct json_body *body, struct span *ret_reason)
{
    return read_only_text(text, body, "reason", PARK_REASON_MAX, ret_reason);
}

enum problem_id sweep_form_read(struct span text, struct json_body *body, enum sweep_what *ret)
{
    struct span what = {0};
    const enum problem_id problem = read_only_text(text, body, "what", 64, &what);

    if (problem != PROBLEM_NONE) {
        return problem;
    }
    if (!what.ptr) {
        return json_body_refuse(body, PROBLEM_MISSING_MEMBER, "what", "");
    }
    for (int i = 0; i < SWEEP_WHAT_COUNT; i++) {
        if (span_equal(what, span_of(sweeps[i]))) {
            *ret = (enum sweep_what)i;
            return PROBLEM_NONE;
        }
    }
    return json_body_refuse(body, PROBLEM_INVALID_MEMBER,
                            "what must be unverifiable or parked-errors", "");
}
