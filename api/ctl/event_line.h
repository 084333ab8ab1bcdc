/* An event as a line for people: as it happens, or in the journey of one entry. Pure. */
#ifndef API_CTL_EVENT_LINE_H
#define API_CTL_EVENT_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/span.h"

struct answer_view;
struct buf;

/* As `tail` shows it, with its line feed. `name`: the event's; `json`: its data. 0, or -EINVAL for
 * what is none of outboxd's. */
int event_line_write(struct span name, struct span json, const struct answer_view *view,
                     struct buf *out);
/* As `show` does: when, how long ago, how long after the one before (`previous_ms`, 0: the first).
 */
void event_line_journey(const json_t *data, int64_t previous_ms, const struct answer_view *view,
                        struct buf *out);

#endif
