/* Bodies of operations on a whole workspace, read. Pure. Contract §7, `POST …/park`, `…/sweep`. */
#ifndef API_WORKSPACE_FORM_H
#define API_WORKSPACE_FORM_H

#include "api/json_body.h"

#define PARK_REASON_MAX 1024

/* What a sweep looks at. */
enum sweep_what {
    SWEEP_WHAT_UNVERIFIABLE,
    SWEEP_WHAT_PARKED_ERRORS,
    SWEEP_WHAT_COUNT,
};

/* Both: PROBLEM_NONE, or the problem (body->detail says more); json_body_done() in either case. A
 * span lives in `body`. */
enum problem_id park_form_read(struct span text, struct json_body *body, struct span *ret_reason);
enum problem_id sweep_form_read(struct span text, struct json_body *body, enum sweep_what *ret);

#endif
