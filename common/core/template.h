/* Templates of kinds: `{id}`, `{clientMessageID}`, `{workspace}`, `{session}`, `{userID}`,
 * `{payload.a.b}` in a URL, a lane or a body. Pure: the caller looks the values up. Contract §4.
 *
 * A place is `{` name `}` with name = letters, digits, `_`, `-`, and dots between them, beginning
 * with a letter. Any other brace is text, so that JSON may stand around places in a body. */
#ifndef COMMON_CORE_TEMPLATE_H
#define COMMON_CORE_TEMPLATE_H

#include "common/core/buf.h"
#include "common/core/span.h"

#define LANE_MAX 128

enum template_escape {
    TEMPLATE_PERCENT, /* URLs and lanes: all but A-Z a-z 0-9 . _ ~ - of a value is percent-encoded;
                         a value that is `.` or `..` is encoded whole, since it would change the
                         path */
    TEMPLATE_RAW,     /* bodies: the value as the caller gives it (JSON text) */
};

/* Gives the value of a place ("payload.a.b"). Returns 0, or a negative number when there is none.
 * The value must live until the next call. */
typedef int template_lookup(void *arg, struct span place, struct span *ret_value);

/* Appends the filled template. Returns 0; -ENOENT when a place has no value, or an empty one in a
 * URL or lane (then *ret_place names it); -ENOBUFS or -ENOMEM from the buffer. */
int template_expand(const char *text, enum template_escape escape, template_lookup *lookup,
                    void *arg, struct buf *out, struct span *ret_place);

/* Fills a lane: as above with TEMPLATE_PERCENT; one that is longer than LANE_MAX becomes "lane-"
 * and the hash of its text, 16 hex digits. A byte that no session name may hold (outside places)
 * counts as a place without value. */
int template_lane(const char *text, template_lookup *lookup, void *arg, struct buf *out,
                  struct span *ret_place);

#endif
