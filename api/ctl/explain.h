/* What a refusal of the API means: a sentence, what to do, and the exit code. Pure. */
#ifndef API_CTL_EXPLAIN_H
#define API_CTL_EXPLAIN_H

#include <jansson.h>

struct buf;

/* `problem`: the answer's JSON, or NULL if it was none. Appends one or two lines. Returns an enum
 * exit_code. */
int explain_problem(const json_t *problem, long status, const char *server, struct buf *out);

#endif
