/* Reads application/problem+json (RFC 9457) out of a target's answer. The answer is untrusted. */
#ifndef WORKER_PROBLEM_BODY_H
#define WORKER_PROBLEM_BODY_H

#include "common/core/span.h"

#define PROBLEM_CODE_MAX    64
#define PROBLEM_DETAIL_MAX  200
#define PROBLEM_CURRENT_MAX 4096

struct problem_body {
    char code[PROBLEM_CODE_MAX +
              1]; /* `code`, or the last segment of `type`; only [A-Za-z0-9_.-]; "" if none */
    char detail[PROBLEM_DETAIL_MAX + 1];   /* `detail`, or `title`; printable, cut; "" if none */
    char current[PROBLEM_CURRENT_MAX + 1]; /* `current` as JSON text; "" if none or too long */
};

/* Never fails: what can't be read leaves *ret empty. */
void problem_body_read(const char *content_type, struct span body, struct problem_body *ret);

#endif
