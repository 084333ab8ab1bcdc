/* Problem documents (RFC 9457) with a stable code. The table is problem.def. Pure. Contract §7. */
#ifndef API_PROBLEM_H
#define API_PROBLEM_H

#include "common/core/buf.h"
#include "common/core/span.h"

#define PROBLEM_CONTENT_TYPE "application/problem+json"

enum problem_id {
#define PROBLEM(id, status, code, title, advice) PROBLEM_##id,
#include "api/problem.def"
    PROBLEM_COUNT,
    PROBLEM_NONE = PROBLEM_COUNT, /* all is well */
};

struct problem {
    unsigned status;
    const char *code, *title, *advice;
};
/* Out of range: the internal error. */
const struct problem *problem_get(enum problem_id id);

/* `{"type":…,"title":…,"status":…,"code":…,"detail":…}`; an empty detail is replaced by the row's
 * advice. */
void problem_write(enum problem_id id, struct span detail, struct buf *out);
/* The same without the closing brace, behind a comma: for members of one's own and json_close(out,
 * '}'). */
void problem_open(enum problem_id id, struct span detail, struct buf *out);

#endif
