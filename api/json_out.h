/* Writes JSON into a buffer: the few shapes that answers have. Bytes that are not UTF-8 become
 * U+FFFD, so that whatever stands in the store, an answer is valid JSON. Failures stay in the
 * buffer and are seen at its end. Pure. */
#ifndef API_JSON_OUT_H
#define API_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/buf.h"
#include "common/core/span.h"

/* A quoted string. */
void json_put_string(struct buf *out, struct span text);
/* `"name":`; its value follows. */
void json_member_name(struct buf *out, const char *name);
/* `"name":value,` each; json_close takes the last comma away. Texts that are empty are left out. */
void json_member_raw(struct buf *out, const char *name, struct span json);
void json_member_text(struct buf *out, const char *name, struct span text);
void json_member_string(struct buf *out, const char *name, struct span text); /* also when empty */
void json_member_i64(struct buf *out, const char *name, int64_t value);
void json_member_bool(struct buf *out, const char *name, bool value);
void json_member_time(struct buf *out, const char *name,
                      int64_t wall_ms); /* RFC 3339; left out if <= 0 */
void json_member_seconds(struct buf *out, const char *name, int64_t ms); /* with milliseconds */
/* Begins with `bracket`, or ends with it (dropping a comma before it). */
void json_open(struct buf *out, char bracket);
void json_open_member(struct buf *out, const char *name, char bracket);
void json_close(struct buf *out, char bracket);
void json_comma(struct buf *out);

#endif
