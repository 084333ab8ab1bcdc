/* What acceptance has in common, whether messages come alone or many at once: what a result is
 * called, how it is counted, and who is told. */
#ifndef API_ACCEPT_OUTCOME_H
#define API_ACCEPT_OUTCOME_H

#include "api/problem.h"
#include "common/core/span.h"
#include "common/shm/metrics.h"
#include "common/store/store.h"

struct api;

/* PROBLEM_NONE: accepted, now or before. */
enum problem_id accept_problem_of(enum accept_result result);
enum label_accept_result accept_label_of(enum accept_result result);
/* Of a message that never came to the store. */
enum label_accept_result accept_label_of_problem(enum problem_id problem);

/* A message was accepted (not for duplicates): a worker is told, and the log. */
void accept_tell(struct api *api, struct span workspace, struct span session, struct span id);

#endif
