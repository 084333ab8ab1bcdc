/* Events as they go over the wire (text/event-stream) and as JSON. Pure. Contract §7. */
#ifndef API_EVENT_TEXT_H
#define API_EVENT_TEXT_H

#include <stdint.h>

#include "common/core/buf.h"
#include "common/core/span.h"

struct store_event;

#define EVENT_TEXT_MAX ((size_t)1 << 20) /* no event is longer, whatever stands in the store */

#define EVENT_NAME_UPDATE    "queue.update"
#define EVENT_NAME_HEARTBEAT "heartbeat"
#define EVENT_NAME_RESET     "reset"

/* "event: NAME\n", and "id: POSITION\n" unless that is empty. */
void event_text_head(const char *name, struct span position, struct buf *out);
/* "data: {…}\n\n": type, workspaceID, … as the stream has them, and `at`. Times as RFC 3339, counts
 * as numbers, what is empty left out; what is no member's name is passed over. */
void event_text_data(const struct store_event *event, struct buf *out);
/* Whole events of our own. `reason`: trimmed, ahead, invalid. */
void event_text_heartbeat(struct span position, int64_t wall_ms, struct buf *out);
void event_text_reset(struct span position, const char *reason, struct buf *out);

#endif
