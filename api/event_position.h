/* How far a reader of events has come: what stands in `id:` and comes back in Last-Event-ID. Opaque
 * to clients; holds all it needs, so that it works after a restart and on another node. Pure.
 * Contract §7.
 *
 *   p<partition>.<ms>-<seq>   readers of a workspace or session: they live in one partition
 *   g<base64url>              readers of everything: the position in each partition; the latest
 * time first, then how far each lies behind it (varints) */
#ifndef API_EVENT_POSITION_H
#define API_EVENT_POSITION_H

#include "common/core/keys.h"
#include "common/core/stream_id.h"

#define EVENT_POSITION_MS_MAX   ((UINT64_C(1) << 48) - 1) /* beyond any clock */
#define EVENT_POSITION_TEXT_MAX 2048                      /* with a NUL */

/* Both return the length of the text; a NUL follows. Times past EVENT_POSITION_MS_MAX are cut. */
size_t event_position_write(uint32_t partition, struct stream_id id,
                            char out[EVENT_POSITION_TEXT_MAX]);
size_t event_position_write_all(const struct stream_id at[PARTITION_COUNT],
                                char out[EVENT_POSITION_TEXT_MAX]);
/* The position in that partition, from either form. 0, or -EINVAL for what none of the two above
 * wrote (or one of another partition). */
int event_position_read(struct span text, uint32_t partition, struct stream_id *ret);
int event_position_read_all(struct span text, struct stream_id ret[PARTITION_COUNT]);

#endif
