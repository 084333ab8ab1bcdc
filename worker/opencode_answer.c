/* Reads answers with jansson. */
#include "worker/opencode_answer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Texts may hold NUL; numbers may be larger than any C integer. */
static json_t *load(struct span body)
{
    return json_loadb(body.ptr, body.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

static const char *info_text(const json_t *message, const char *name)
{
    const char *text = json_string_value(json_object_get(json_object_get(message, "info"), name));

    return text ? text : "";
}

bool opencode_is_reply(struct span body)
{
    json_t *root = load(body);
    const bool is_reply = info_text(root, "role")[0] != '\0';

    json_decref(root);
    return is_reply;
}

struct opencode_version opencode_read_version(struct span body)
{
    struct opencode_version version = {""};
    json_t *root = load(body);
    const char *text = json_string_value(json_object_get(root, "version"));

    if (text && strlen(text) < sizeof(version.text)) {
        snprintf(version.text, sizeof(version.text), "%s", text);
    }
    json_decref(root);
    return version;
}

enum opencode_message opencode_read_message(int status, struct span body, const char *id)
{
    enum opencode_message message = OPENCODE_MESSAGE_UNKNOWN;
    json_t *root = load(body);
    const char *name = json_string_value(json_object_get(root, "name"));
    const json_t *parts = json_object_get(root, "parts");

    if (status == 404 && name && strcmp(name, "NotFoundError") == 0) {
        message = OPENCODE_MESSAGE_NOT_THERE;
    } else if (status == 200 && strcmp(info_text(root, "id"), id) == 0 && json_is_array(parts)) {
        message = json_array_size(parts) > 0 ? OPENCODE_MESSAGE_STORED : OPENCODE_MESSAGE_EMPTY;
    }
    json_decref(root);
    return message;
}

static bool has_text(const json_t *message, struct span text)
{
    size_t i;
    const json_t *part;

    json_array_foreach(json_object_get(message, "parts"), i, part)
    {
        const json_t *value = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));

        if (type && strcmp(type, "text") == 0 && json_is_string(value) &&
            json_string_length(value) == text.len &&
            memcmp(json_string_value(value), text.ptr, text.len) == 0) {
            return true;
        }
    }
    return false;
}

static double created_ms(const json_t *message)
{
    const json_t *info = json_object_get(message, "info");

    return json_number_value(json_object_get(json_object_get(info, "time"), "created"));
}

static bool is_named(const json_t *message, struct span id)
{
    return id.len > 0 && span_equal(span_of(info_text(message, "id")), id);
}

/* Whether the message may be the one that is looked for, as far as its place goes. A fitting one
 * that is newer than `until` is not; but if `until` is gone from the transcript, nobody knows. */
static bool is_in_reach(struct opencode_search *search)
{
    if (search->until.len == 0 || search->has_met_until) {
        return true;
    }
    search->has_passed_one = !span_equal(search->until, span_of(OPENCODE_EMPTY_TRANSCRIPT));
    return false;
}

struct opencode_page opencode_read_page(struct span body, struct opencode_search *search)
{
    struct opencode_page page = {0};
    json_t *root = load(body);

    page.is_readable = json_is_array(root);
    page.count = json_array_size(root);
    for (size_t i = page.count; i-- > 0 && !page.is_past_start;) { /* from the newest one back */
        const json_t *message = json_array_get(root, i);

        if (info_text(message, "role")[0] == '\0' || created_ms(message) <= 0) {
            page.is_readable = false; /* no message of an agent: nothing is proven */
            break;
        }
        search->has_met_until = search->has_met_until || is_named(message, search->until);
        if (is_named(message, search->baseline) ||
            (created_ms(message) < (double)search->not_before_ms &&
             (search->has_met_until || !search->has_passed_one))) {
            page.is_past_start = true;
        } else if (created_ms(message) >= (double)search->not_before_ms &&
                   strcmp(info_text(message, "role"), "user") == 0 &&
                   has_text(message, search->text) && is_in_reach(search)) {
            page.is_found = true;
        }
    }
    json_decref(root);
    return page;
}

int opencode_read_newest(struct span body, char ret_id[OPENCODE_BASELINE_MAX + 1])
{
    json_t *root = load(body);
    const size_t count = json_array_size(root);
    const char *id = count > 0 ? info_text(json_array_get(root, count - 1), "id") : "";
    const bool is_good =
        json_is_array(root) && (count == 0 || id[0]) && strlen(id) <= OPENCODE_BASELINE_MAX;

    ret_id[0] = '\0';
    if (is_good) {
        snprintf(ret_id, OPENCODE_BASELINE_MAX + 1, "%s", id);
    }
    json_decref(root);
    return is_good ? 0 : -EBADMSG;
}
