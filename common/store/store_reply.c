/* Reads what scripts answer. The store's content is untrusted: a reply of another form gives zeroes
 * and empty spans, an entry that can't be read is marked, nothing is asserted. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "common/store/store_internal.h"

/* The year 2255: how far apart two times are fits into 64 bits of nanoseconds. */
#define TIME_MS_MAX INT64_C(9000000000000)

bool reply_is_array(const struct redisReply *reply, size_t at_least)
{
    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= at_least;
}

struct span reply_span(const struct redisReply *reply)
{
    if (!reply || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS)) {
        return (struct span){"", 0};
    }
    return (struct span){reply->str, reply->len};
}

bool reply_is_json(struct span text)
{
    json_t *root = NULL;

    if (text.len > 0) {
        root = json_loadb(text.ptr, text.len,
                          JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    }
    json_decref(root);
    return text.len == 0 || root;
}

static int64_t span_number(struct span text)
{
    char copy[24];

    if (text.len == 0 || text.len >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return strtoll(copy, NULL, 10);
}

int64_t reply_time_ms(int64_t ms)
{
    return ms > 0 && ms <= TIME_MS_MAX ? ms : 0;
}

static uint32_t span_count(struct span text)
{
    int64_t number = span_number(text);

    return number < 0 ? 0 : number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

int64_t reply_number(const struct redisReply *reply)
{
    if (reply && reply->type == REDIS_REPLY_INTEGER) {
        return reply->integer;
    }
    return span_number(reply_span(reply));
}

/* lastError is {"code":…,"message":…}: both texts are copied into the entry's private room. */
static void read_error(struct span json, struct entry_text *text, struct entry *entry)
{
    json_t *root = json_loadb(json.ptr, json.len, 0, NULL);
    const char *code = json_string_value(json_object_get(root, "code"));
    const char *message = json_string_value(json_object_get(root, "message"));

    if (code) {
        int len = snprintf(text->error, sizeof(text->error), "%s%c%s", code, '\0',
                           message ? message : "");
        size_t held = len < 0                             ? 0
                      : (size_t)len < sizeof(text->error) ? (size_t)len
                                                          : sizeof(text->error) - 1;
        size_t code_len = strlen(code);

        if (code_len < held) {
            entry->error_code = (struct span){text->error, code_len};
            entry->error_message = (struct span){text->error + code_len + 1, held - code_len - 1};
        }
    }
    json_decref(root);
}

/* Where each small field of the hash goes. */
enum field_type { FIELD_SPAN, FIELD_TIME, FIELD_COUNT };
struct field {
    const char *name;
    size_t offset;
    enum field_type type;
};
static const struct field fields_of_entry[] = {
    {"session", offsetof(struct entry, session), FIELD_SPAN},
    {"body", offsetof(struct entry, body_bytes), FIELD_SPAN},
    {"digest", offsetof(struct entry, digest), FIELD_SPAN},
    {"flags", offsetof(struct entry, flags), FIELD_SPAN},
    {"conflictCurrent", offsetof(struct entry, conflict_current), FIELD_SPAN},
    {"parkedReason", offsetof(struct entry, parked_reason), FIELD_SPAN},
    {"acceptedAt", offsetof(struct entry, accepted_at_ms), FIELD_TIME},
    {"lastAttemptAt", offsetof(struct entry, last_attempt_at_ms), FIELD_TIME},
    {"lastEndAt", offsetof(struct entry, last_end_at_ms), FIELD_TIME},
    {"firstClaimAt", offsetof(struct entry, first_claim_at_ms), FIELD_TIME},
    {"nextAttemptAt", offsetof(struct entry, next_attempt_at_ms), FIELD_TIME},
    {"attempts", offsetof(struct entry, attempts), FIELD_COUNT},
    {"verifyAttempts", offsetof(struct entry, verify_attempts), FIELD_COUNT},
    {"transientFails", offsetof(struct entry, transient_fails), FIELD_COUNT},
    {"sends", offsetof(struct entry, sends), FIELD_COUNT},
    {"attemptBase", offsetof(struct entry, attempt_base), FIELD_COUNT},
    {"baseline", offsetof(struct entry, baseline), FIELD_SPAN},
    {"until", offsetof(struct entry, until), FIELD_SPAN},
    {"deps", offsetof(struct entry, deps), FIELD_SPAN},
    {"fills", offsetof(struct entry, fills), FIELD_SPAN},
    {"retry", offsetof(struct entry, retry), FIELD_SPAN},
    {"root", offsetof(struct entry, root), FIELD_SPAN},
    {"part", offsetof(struct entry, part), FIELD_SPAN},
    {"ifMatch", offsetof(struct entry, if_match), FIELD_SPAN},
    {"rank", offsetof(struct entry, rank_ms), FIELD_TIME},
};

static void read_field(struct span name, struct span value, struct entry *entry)
{
    for (size_t i = 0; i < sizeof(fields_of_entry) / sizeof(fields_of_entry[0]); i++) {
        const struct field *field = &fields_of_entry[i];

        if (!span_equal(name, span_of(field->name))) {
            continue;
        }
        void *at = (char *)entry + field->offset;

        switch (field->type) {
        case FIELD_SPAN:
            *(struct span *)at = value;
            break;
        case FIELD_TIME:
            *(int64_t *)at = reply_time_ms(span_number(value));
            break;
        case FIELD_COUNT:
            *(uint32_t *)at = span_count(value);
            break;
        }
        return;
    }
}

int reply_entry(const struct redisReply *fields, struct span id, struct entry_text *text,
                struct entry *ret)
{
    bool has_status = false;

    if (!reply_is_array(fields, 2)) {
        return -EBADMSG;
    }
    *ret = (struct entry){.id = id};
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        struct span name = reply_span(fields->element[i]);
        struct span value = reply_span(fields->element[i + 1]);

        if (span_equal(name, span_of("status"))) {
            has_status = entry_status_from_name(value.ptr, value.len, &ret->status) == 0;
        } else if (span_equal(name, span_of("lastError"))) {
            read_error(value, text, ret);
        } else {
            read_field(name, value, ret);
        }
    }
    ret->is_readable = has_status && entry_body_decode(ret->body_bytes, &ret->body) == 0 &&
                       reply_is_json(ret->body.model) && reply_is_json(ret->body.payload);
    if (!ret->is_readable) {
        ret->body = (struct entry_body){0};
    }
    if (!has_status) {
        ret->status = STATUS_ERROR;
    }
    return 0;
}

void reply_counts(const struct redisReply *flat, uint64_t ret_by_status[STATUS_COUNT])
{
    for (size_t i = 0; reply_is_array(flat, 2) && i + 1 < flat->elements; i += 2) {
        const struct span name = reply_span(flat->element[i]);
        const int64_t number = reply_number(flat->element[i + 1]);
        enum entry_status status;

        if (number > 0 && entry_status_from_name(name.ptr, name.len, &status) == 0) {
            ret_by_status[status] = (uint64_t)number;
        }
    }
}
