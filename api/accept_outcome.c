/* Tables, a hint and a log line. */
#include "api/accept_outcome.h"

#include "api/api.h"
#include "common/base/log.h"
#include "common/core/keys.h"

enum problem_id accept_problem_of(enum accept_result result)
{
    switch (result) {
    case ACCEPT_ACCEPTED:
    case ACCEPT_DUPLICATE:
        return PROBLEM_NONE;
    case ACCEPT_KEY_REUSE:
        return PROBLEM_KEY_REUSE;
    case ACCEPT_SESSION_FULL:
        return PROBLEM_SESSION_FULL;
    }
    return PROBLEM_INTERNAL;
}

enum label_accept_result accept_label_of(enum accept_result result)
{
    switch (result) {
    case ACCEPT_ACCEPTED:
        return LABEL_ACCEPT_RESULT_ACCEPTED;
    case ACCEPT_DUPLICATE:
        return LABEL_ACCEPT_RESULT_DUPLICATE;
    case ACCEPT_KEY_REUSE:
        return LABEL_ACCEPT_RESULT_KEY_REUSE;
    case ACCEPT_SESSION_FULL:
        return LABEL_ACCEPT_RESULT_SESSION_FULL;
    }
    return LABEL_ACCEPT_RESULT_OTHER;
}

enum label_accept_result accept_label_of_problem(enum problem_id problem)
{
    return problem == PROBLEM_TOO_LARGE ? LABEL_ACCEPT_RESULT_TOO_LARGE
                                        : LABEL_ACCEPT_RESULT_INVALID;
}

void accept_tell(struct api *api, struct span workspace, struct span session, struct span id)
{
    char text[3][SESSION_MAX + 1];

    hints_send(&api->hints, workspace, session);
    if (log_wants(LOG_LEVEL_DEBUG)) {
        log_debug("entry accepted", "workspace", span_text(workspace, text[0], sizeof(text[0])),
                  "session", span_text(session, text[1], sizeof(text[1])), "entry",
                  span_text(id, text[2], sizeof(text[2])));
    }
}
