/* Absent values are left out; times are RFC 3339 with milliseconds in UTC; `model` and `payload`
 * stand as they were sent. */
#include "api/entry_json.h"

#include <jansson.h>

#include "api/json_out.h"
#include "common/store/operate_plan.h"

static void write_error(const struct entry *entry, struct buf *out)
{
    if (entry->error_code.len == 0) {
        return;
    }
    json_open_member(out, "lastError", '{');
    json_member_text(out, "code", entry->error_code);
    json_member_text(out, "message", entry->error_message);
    json_close(out, '}');
    json_comma(out);
}

/* JSON text; what is none (somebody else wrote to the store) stands as a string. */
static void write_conflict(const struct entry *entry, struct buf *out)
{
    const struct span current = entry->conflict_current;

    if (current.len == 0) {
        return;
    }
    json_t *value =
        json_loadb(current.ptr, current.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);

    if (value) {
        json_member_raw(out, "conflictCurrent", current);
    } else {
        json_member_text(out, "conflictCurrent", current);
    }
    json_decref(value);
}

/* With what results have filled in. */
static void write_payload(const struct entry *entry, struct buf *out)
{
    struct buf filled;
    struct span payload = entry->body.payload;

    buf_init(&filled, out->max);
    if (payload.len > 0 && entry_payload(entry, &filled, &payload) == 0) {
        json_member_raw(out, "payload", payload);
    }
    buf_done(&filled);
}

/* IDs that stand apart by blanks. */
static void write_ids(struct buf *out, const char *name, struct span ids)
{
    struct span rest = ids;

    if (rest.len == 0) {
        return;
    }
    json_open_member(out, name, '[');
    while (rest.len > 0) {
        const char *blank = memchr(rest.ptr, ' ', rest.len);
        const size_t len = blank ? (size_t)(blank - rest.ptr) : rest.len;

        json_put_string(out, (struct span){rest.ptr, len});
        json_comma(out);
        rest.ptr += len + (blank ? 1 : 0);
        rest.len -= len + (blank ? 1 : 0);
    }
    json_close(out, ']');
    json_comma(out);
}

static bool is_waiting(enum entry_status status)
{
    return status == STATUS_PENDING || status == STATUS_VERIFYING;
}

void entry_json_write(const struct entry *entry, struct span id,
                      const struct entry_context *context, struct buf *out)
{
    const struct entry_body *body = &entry->body;

    json_open(out, '{');
    json_member_text(out, "id", id);
    json_member_text(out, "sessionID", entry->session);
    json_member_text(out, "clientMessageID", body->client_message_id);
    json_member_text(out, "userID", body->user_id);
    json_member_text(out, "kind", body->kind);
    if (!entry->is_readable) {
        json_member_bool(out, "unreadable", true);
    }
    if (body->has_text) {
        json_member_string(out, "text", body->text);
    }
    if (body->model.len > 0) {
        json_member_raw(out, "model", body->model);
    }
    write_payload(entry, out);
    write_ids(out, "dependsOn", entry->deps); /* what it still waits for */
    write_ids(out, "waitsForFailed", entry->failed_deps);
    json_member_text(out, "status", span_of(entry_status_name(entry->status)));
    json_member_time(out, "acceptedAt", entry->accepted_at_ms);
    json_member_i64(out, "attempts", entry->attempts);
    json_member_i64(out, "verifyAttempts", entry->verify_attempts);
    json_member_i64(out, "transientFails", entry->transient_fails);
    json_member_i64(out, "sends", entry->sends);
    json_member_time(out, "lastAttemptAt", entry->last_attempt_at_ms);
    if (is_waiting(entry->status)) {
        json_member_time(out, "nextAttemptAt", entry->next_attempt_at_ms);
    }
    write_error(entry, out);
    write_conflict(entry, out);
    if (entry->status == STATUS_PARKED) {
        json_member_text(out, "parkedReason", entry->parked_reason);
    }
    if (context->is_blocked) {
        json_member_bool(out, "blockedByInFlight", true);
    }
    if (context->is_in_flight && context->in_flight_since_ms > 0) {
        json_member_seconds(out, "inFlightFor", context->now_ms - context->in_flight_since_ms);
    }
    if (is_waiting(entry->status) &&
        context->now_ms - entry->accepted_at_ms >= context->stuck_after_ms) {
        json_member_bool(out, "delayed", true);
    }
    json_close(out, '}');
}

void entry_json_write_tombstone(const struct tombstone *tombstone, struct span id, struct buf *out)
{
    json_open(out, '{');
    json_member_text(out, "id", id);
    json_member_text(out, "sessionID", tombstone->session);
    json_member_text(out, "clientMessageID", tombstone->client_message_id);
    json_member_text(out, "kind", tombstone->kind);
    json_member_text(out, "status", tombstone->how);
    json_member_time(out, "acceptedAt", tombstone->accepted_at_ms);
    json_member_time(out, "endedAt", tombstone->ended_at_ms);
    json_member_text(out, "replacedBy", tombstone->replaced_by);
    if (tombstone->result.len > 0) {
        json_member_raw(out, "result", tombstone->result);
    }
    json_close(out, '}');
}
