/* A request body that must be one JSON object, read: the object, or which problem it is. Pure.
 * Contract §11: limits on every input. */
#ifndef API_JSON_BODY_H
#define API_JSON_BODY_H

#include <jansson.h>

#include "api/problem.h"
#include "common/core/span.h"

#define JSON_DEPTH_MAX   64
#define JSON_DETAIL_SIZE 256

struct json_body {
    json_t *root;                  /* owned; NULL if it was none */
    char detail[JSON_DETAIL_SIZE]; /* why not, after a problem; "": nothing to add */
};

/* Each returns PROBLEM_NONE or the problem; either way json_body_done() ends it. */
enum problem_id json_body_parse(struct json_body *body, struct span text);
/* No member but these. */
enum problem_id json_body_check_names(struct json_body *body, const char *const *names,
                                      size_t count);
/* A text of at most `max` bytes; an absent one leaves *ret as it is. `too_long` names the problem
 * of one that is longer. */
enum problem_id json_body_text(struct json_body *body, const char *name, size_t max,
                               enum problem_id too_long, struct span *ret);
/* `problem`, with "<what><name>" for people. */
enum problem_id json_body_refuse(struct json_body *body, enum problem_id problem, const char *what,
                                 const char *name);
void json_body_done(struct json_body *body);

#endif
