/* Events of a store that holds anything: valid JSON in one line, in a frame that nothing breaks. */
#include <jansson.h>

#include "api/event_text.h"
#include "common/store/store_events.h"
#include "tests/fuzz/fuzz.h"

static struct span take(const char **at, const char *end)
{
    const char *start = *at;
    const char *stop = start < end ? memchr(start, '\t', (size_t)(end - start)) : NULL;
    const struct span part = {start, (size_t)((stop ? stop : end) - start)};

    *at = stop ? stop + 1 : end;
    return part;
}

/* Names and values, a tab between each. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *at = (const char *)bytes, *end = at + len;
    struct store_event event = {.id = {len * 1000000000, 0}};
    struct buf out;

    while (at < end && event.field_count < EVENT_FIELDS_MAX) {
        event.fields[event.field_count].name = take(&at, end);
        event.fields[event.field_count++].value = take(&at, end);
    }
    buf_init(&out, EVENT_TEXT_MAX);
    event_text_data(&event, &out);
    MUST_HOLD(!out.failed && out.len > 8);
    MUST_HOLD(memcmp(out.bytes, "data: {", 7) == 0);
    MUST_HOLD(strcspn(out.bytes, "\r\n") == out.len - 2);
    MUST_HOLD(strcmp(out.bytes + out.len - 2, "\n\n") == 0);
    json_t *json =
        json_loadb(out.bytes + 6, out.len - 8, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    MUST_HOLD(json_is_object(json));
    json_decref(json);
    buf_done(&out);
    return 0;
}
