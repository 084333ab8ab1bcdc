/* Walks a path of member names through JSON objects. */
#include "common/core/payload_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define NAME_MAX_LEN 128
#define EXACT_INTEGERS                                                                             \
    9007199254740992.0 /* 2^53: below it a double that is a whole number is that number */

const json_t *payload_value(const json_t *payload, struct span path)
{
    const json_t *at = payload;

    while (at && path.len > 0) {
        const char *dot = memchr(path.ptr, '.', path.len);
        const size_t len = dot ? (size_t)(dot - path.ptr) : path.len;
        char name[NAME_MAX_LEN];

        if (len >= sizeof(name)) {
            return NULL;
        }
        memcpy(name, path.ptr, len);
        name[len] = '\0';
        at = json_object_get(at, name);
        path.ptr += len + (dot ? 1 : 0);
        path.len -= len + (dot ? 1 : 0);
    }
    return at;
}

/* A payload with an integer that no C type holds is read with all its integers as doubles: whole
 * ones are written as integers again. */
static void write_real(double real, char room[PAYLOAD_VALUE_ROOM])
{
    const int is_whole = fabs(real) < EXACT_INTEGERS && floor(real) == real;

    snprintf(room, PAYLOAD_VALUE_ROOM, is_whole ? "%.0f" : "%.17g", real);
}

int payload_value_text(const json_t *value, char room[PAYLOAD_VALUE_ROOM], struct span *ret)
{
    if (!value) {
        return -ENOENT;
    }
    switch (json_typeof(value)) {
    case JSON_STRING:
        *ret = (struct span){json_string_value(value), json_string_length(value)};
        return 0;
    case JSON_INTEGER:
        snprintf(room, PAYLOAD_VALUE_ROOM, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(json_real_value(value), room);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        snprintf(room, PAYLOAD_VALUE_ROOM, "%s", json_is_true(value) ? "true" : "false");
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_NULL:
        return -ENOENT;
    }
    *ret = span_of(room);
    return 0;
}
