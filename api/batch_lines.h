/* Cuts the body of a batch into its lines. Pure. */
#ifndef API_BATCH_LINES_H
#define API_BATCH_LINES_H

#include <stdbool.h>

#include "common/core/span.h"

struct batch_lines {
    struct span rest; /* what was not cut yet: begin with the whole body */
};

/* The next line without its end (\n, or \r\n); an empty one is a line too. False: there is none:
 * behind the last end of a line stands nothing. */
bool batch_lines_next(struct batch_lines *lines, struct span *ret);
/* How many there are; stops counting beyond `max`. */
size_t batch_lines_count(struct span body, size_t max);

#endif
