#include "worker/problem_body.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/core/buf.h"
#include "common/core/json_exact.h"

static bool is_problem(const char *content_type)
{
    static const char name[] = "application/problem+json";

    if (!content_type || strncasecmp(content_type, name, sizeof(name) - 1) != 0) {
        return false;
    }
    const char next = content_type[sizeof(name) - 1];

    return next == '\0' || next == ';' || next == ' ';
}

static void copy_code(const char *from, char *to)
{
    size_t len = 0;

    for (; *from != '\0' && len < PROBLEM_CODE_MAX; from++) {
        const char c = *from;
        const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                              (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';

        if (!is_plain) {
            to[0] = '\0';
            return;
        }
        to[len++] = c;
    }
    to[len] = '\0';
}

/* Cut at a character's beginning, control characters as blanks. */
static void copy_text(const char *from, char *to)
{
    size_t len = strlen(from);

    if (len > PROBLEM_DETAIL_MAX) {
        len = PROBLEM_DETAIL_MAX;
        while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    for (size_t i = 0; i < len; i++) {
        to[i] = from[i];
        if ((unsigned char)to[i] < 0x20 || to[i] == 0x7f) {
            to[i] = ' ';
        }
    }
    to[len] = '\0';
}

/* The last segment of the type's path: "https://example.org/problems/out-of-credit" ->
 * "out-of-credit". */
static const char *last_segment(const char *type)
{
    const char *slash = strrchr(type, '/');
    const char *colon = strrchr(type, ':');

    return slash ? slash + 1 : colon ? colon + 1 : type;
}

/* A text member; NULL for one that holds a NUL character, as numbers of json_exact do. */
static const char *text_of(const json_t *root, const char *name)
{
    const json_t *member = json_object_get(root, name);
    const char *text = json_string_value(member);

    return text && strlen(text) == json_string_length(member) ? text : NULL;
}

void problem_body_read(const char *content_type, struct span body, struct problem_body *ret)
{
    *ret = (struct problem_body){0};
    if (!is_problem(content_type)) {
        return;
    }
    json_t *root = json_exact_load(body);
    const char *code = text_of(root, "code");
    const char *type = text_of(root, "type");
    const char *detail = text_of(root, "detail");
    const char *title = text_of(root, "title");
    const json_t *current = json_object_get(root, "current");

    if (code) {
        copy_code(code, ret->code);
    } else if (type && strcmp(type, "about:blank") != 0) {
        copy_code(last_segment(type), ret->code);
    }
    if (detail || title) {
        copy_text(detail ? detail : title, ret->detail);
    }
    if (current && !json_is_null(current)) {
        struct buf text;

        buf_init(&text, PROBLEM_CURRENT_MAX);
        if (json_exact_dump(current, &text) == 0) {
            snprintf(ret->current, sizeof(ret->current), "%s", text.bytes);
        }
        buf_done(&text);
    }
    json_decref(root);
}
