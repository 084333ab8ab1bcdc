/* What a web page in somebody's browser may do here. A browser sends its owner's requests from any
 * page: where no token is asked for (loopback only), nothing else keeps a stranger's page out.
 * Pure. */
#ifndef API_ORIGIN_H
#define API_ORIGIN_H

#include <stdbool.h>

#include "api/problem.h"
#include "common/core/span.h"

struct text_list;

/* Whether an Origin header's value is one of the configured ones, byte by byte. */
bool origin_is_listed(const struct text_list *listed, struct span origin);

/* For requests that show no token because none is asked for, over TCP.
 *   origin  the header's value; ptr NULL: none (no browser, or a page of our own that only reads)
 *   host    of the header Host; ptr NULL: none
 * PROBLEM_FOREIGN_ORIGIN: it comes from another site's page. PROBLEM_FOREIGN_HOST: the page was
 * loaded under a name that is not this machine's, which leads here all the same (DNS rebinding). */
enum problem_id origin_judge(const struct text_list *listed, struct span origin, struct span host);

#endif
