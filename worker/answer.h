/* What an answer means: how the transfer went, the status, the problem code -> an outcome. Pure, a
 * table. Contract §4, "How `http` reads an answer". */
#ifndef WORKER_ANSWER_H
#define WORKER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/lifecycle.h"
#include "common/core/span.h"

struct answer {
    bool is_started;          /* the request may have left: any byte of it */
    int status;               /* of the final status line; 0: none came */
    bool is_complete;         /* the whole body was read */
    struct span problem_code; /* from application/problem+json; empty if none */
};

struct answer_reading {
    enum outcome outcome;
    bool honours_retry_after;
};

/* `is_idempotent`: of the kind. A kind without a look-up still gets AMBIGUOUS here: what follows is
 * on_ambiguous. */
struct answer_reading answer_read(const struct answer *answer, bool is_idempotent);

#endif
