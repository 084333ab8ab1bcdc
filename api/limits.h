/* Which answers say that somebody ran into a limit: counted by limit. Pure. */
#ifndef API_LIMITS_H
#define API_LIMITS_H

#include "api/problem.h"

struct metrics;

/* Nothing for a problem that is no limit. */
void limits_count_problem(struct metrics *metrics, enum problem_id problem);
/* The same of a request that the HTTP library refused by itself. */
void limits_count_status(struct metrics *metrics, unsigned status);

#endif
