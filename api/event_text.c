/* Writes events. Their fields come from the store and are not trusted: JSON's escapes keep every
 * line break out of the stream's framing. */
#include "api/event_text.h"

#include "api/json_out.h"
#include "common/store/store_events.h"

#define NAME_MAX_LEN 31
#define DIGITS_MAX   15                       /* exact in every reader's numbers */
#define VALUE_MAX    4096                     /* bytes of one text; a longer one is cut */
#define TIME_MS_MAX  INT64_C(253402300799999) /* the last one with a year of four digits */

enum member_type { MEMBER_TEXT, MEMBER_COUNT, MEMBER_TIME };

/* Members that are no texts. To add one: a row. */
static const struct {
    const char *name;
    enum member_type type;
} members[] = {
    {"attempt", MEMBER_COUNT},        {"attempts", MEMBER_COUNT},
    {"sends", MEMBER_COUNT},          {"verifyAttempts", MEMBER_COUNT},
    {"transientFails", MEMBER_COUNT}, {"nextAttemptAt", MEMBER_TIME},
};

static enum member_type type_of(const char *name)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (strcmp(members[i].name, name) == 0) {
            return members[i].type;
        }
    }
    return MEMBER_TEXT;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* False: no member's name, or `at`, which is ours. */
static bool read_name(struct span text, char name[NAME_MAX_LEN + 1])
{
    if (text.len == 0 || text.len > NAME_MAX_LEN || span_equal(text, span_of("at"))) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!is_letter_or_digit(text.ptr[i])) {
            return false;
        }
    }
    memcpy(name, text.ptr, text.len);
    name[text.len] = '\0';
    return true;
}

static bool read_count(struct span text, int64_t *ret)
{
    int64_t value = 0;

    if (text.len == 0 || text.len > DIGITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        value = value * 10 + (text.ptr[i] - '0');
    }
    *ret = value;
    return true;
}

static bool is_named_before(const struct store_event *event, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (span_equal(event->fields[k].name, event->fields[i].name)) {
            return true;
        }
    }
    return false;
}

static void write_member(const char *name, struct span value, struct buf *out)
{
    int64_t number = 0;
    const bool is_number = read_count(value, &number);

    switch (type_of(name)) {
    case MEMBER_TEXT:
        json_member_text(out, name,
                         (struct span){value.ptr, value.len < VALUE_MAX ? value.len : VALUE_MAX});
        return;
    case MEMBER_COUNT:
        if (is_number) {
            json_member_i64(out, name, number);
        }
        return;
    case MEMBER_TIME:
        if (is_number && number <= TIME_MS_MAX) {
            json_member_time(out, name, number);
        }
        return;
    }
}

void event_text_data(const struct store_event *event, struct buf *out)
{
    char name[NAME_MAX_LEN + 1];

    (void)buf_append_str(out, "data: ");
    json_open(out, '{');
    for (size_t i = 0; i < event->field_count; i++) {
        if (read_name(event->fields[i].name, name) && !is_named_before(event, i)) {
            write_member(name, event->fields[i].value, out);
        }
    }
    if (event->id.ms <= (uint64_t)TIME_MS_MAX) {
        json_member_time(out, "at", (int64_t)event->id.ms);
    }
    json_close(out, '}');
    (void)buf_append_str(out, "\n\n");
}

void event_text_head(const char *name, struct span position, struct buf *out)
{
    (void)buf_appendf(out, "event: %s\n", name);
    if (position.len > 0) {
        (void)buf_append_str(out, "id: ");
        (void)buf_append(out, position.ptr, position.len);
        (void)buf_append_str(out, "\n");
    }
}

void event_text_heartbeat(struct span position, int64_t wall_ms, struct buf *out)
{
    event_text_head(EVENT_NAME_HEARTBEAT, position, out);
    (void)buf_append_str(out, "data: ");
    json_open(out, '{');
    json_member_time(out, "at", wall_ms);
    json_close(out, '}');
    (void)buf_append_str(out, "\n\n");
}

void event_text_reset(struct span position, const char *reason, struct buf *out)
{
    event_text_head(EVENT_NAME_RESET, position, out);
    (void)buf_append_str(out, "data: ");
    json_open(out, '{');
    json_member_text(out, "reason", span_of(reason));
    json_close(out, '}');
    (void)buf_append_str(out, "\n\n");
}
