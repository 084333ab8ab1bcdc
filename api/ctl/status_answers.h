/* The state of a server, put together from /readyz and /metrics, as JSON and for people. Pure. */
#ifndef API_CTL_STATUS_ANSWERS_H
#define API_CTL_STATUS_ANSWERS_H

#include <jansson.h>

#include "common/core/span.h"

struct answer_view;
struct buf;

/* `ready`: the answer of /readyz, ready or not. `metrics`: the text of /metrics, empty if there is
 * none.
 * {"ready":…,"why":…,"degraded":[…],"version":…,"durability":…,"store":…,"entries":{…},"oldestOpenAge":…,
 * "processes":[…],"restarts":…}; what is not known is left out. The caller gives it back. */
json_t *status_make(const json_t *ready, struct span metrics);
void status_print(const json_t *state, const char *server, const struct answer_view *view,
                  struct buf *out);

#endif
