/* Values of `{payload.a.b}` in templates: where a path leads in a payload, and what stands there as
 * text. Pure. Contract §4. */
#ifndef COMMON_CORE_PAYLOAD_VALUE_H
#define COMMON_CORE_PAYLOAD_VALUE_H

#include <jansson.h>

#include "common/core/span.h"

#define PAYLOAD_VALUE_ROOM 64

/* The member at "a.b" of a payload, or NULL. An empty path is the payload itself. */
const json_t *payload_value(const json_t *payload, struct span path);
/* As it stands in a URL or a lane: a string's own text, a number or boolean as JSON writes it (in
 * `room`). 0, or -ENOENT for an object, an array, null or nothing. */
int payload_value_text(const json_t *value, char room[PAYLOAD_VALUE_ROOM], struct span *ret);

#endif
