/* What a request's head alone decides, before its body is read: which route, who calls, whether the
 * body is one that we take. */
#ifndef API_HEAD_H
#define API_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "api/problem.h"
#include "api/router.h"

#define HEAD_MAX (16U << 10) /* what PROBLEM_HEADERS_TOO_LARGE says */

struct request;
struct settings;

/* Sets route, params, allowed, caller, is_preflight, and `early` if it is to be refused. */
void head_judge(struct request *request, const char *method, const char *url);
/* Refused without reading the body: the library then closes the connection. */
bool head_is_refused_at_once(enum problem_id problem);
/* Answers a request that head_judge refused, or that only asks what it might ask. */
void head_answer(struct request *request);
/* Headers of every answer, for any of them once. */
void head_add_to_answer(struct request *request);
/* The longest body of a route that is read. */
size_t head_body_max(const struct settings *settings, enum route_id route);

#endif
