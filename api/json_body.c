/* jansson decides what is valid JSON; every way to be none has its problem. */
#include "api/json_body.h"

#include <stdio.h>
#include <string.h>

enum problem_id json_body_refuse(struct json_body *body, enum problem_id problem, const char *what,
                                 const char *name)
{
    snprintf(body->detail, sizeof(body->detail), "%s%.100s", what, name);
    return problem;
}

/* ---- is it JSON ---- */

static enum problem_id json_problem(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_invalid_utf8:
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return PROBLEM_INVALID_TEXT;
    case json_error_duplicate_key:
        return PROBLEM_DUPLICATE_MEMBER;
    case json_error_stack_overflow:
        return PROBLEM_JSON_TOO_DEEP;
    case json_error_out_of_memory:
        return PROBLEM_INTERNAL;
    case json_error_invalid_syntax:
        /* Lone surrogates come as a syntax error. */
        return strstr(error->text, "Unicode") ? PROBLEM_INVALID_TEXT : PROBLEM_INVALID_JSON;
    case json_error_unknown:
    case json_error_cannot_open_file:
    case json_error_invalid_argument:
    case json_error_premature_end_of_input:
    case json_error_end_of_input_expected:
    case json_error_invalid_format:
    case json_error_wrong_type:
    case json_error_null_value:
    case json_error_item_not_found:
    case json_error_index_out_of_range:
    case json_error_numeric_overflow:
        break;
    }
    return PROBLEM_INVALID_JSON;
}

/* Brackets outside strings: before anything that calls itself reads the text. */
static bool is_too_deep(struct span text)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_DEPTH_MAX) {
                return true;
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

enum problem_id json_body_parse(struct json_body *body, struct span text)
{
    json_error_t error;

    *body = (struct json_body){0};
    if (text.len == 0) {
        return PROBLEM_BODY_MISSING;
    }
    if (is_too_deep(text)) {
        return PROBLEM_JSON_TOO_DEEP;
    }
    body->root =
        json_loadb(text.ptr, text.len,
                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    if (!body->root) {
        snprintf(body->detail, sizeof(body->detail), "%s (at byte %d)", error.text, error.position);
        return json_problem(&error);
    }
    if (!json_is_object(body->root)) {
        return json_body_refuse(body, PROBLEM_INVALID_MEMBER, "the body must be one JSON object",
                                "");
    }
    return PROBLEM_NONE;
}

/* ---- members ---- */

enum problem_id json_body_check_names(struct json_body *body, const char *const *names,
                                      size_t count)
{
    const char *name;
    json_t *value;

    json_object_foreach(body->root, name, value)
    {
        size_t i = 0;

        while (i < count && strcmp(name, names[i]) != 0) {
            i++;
        }
        if (i == count) {
            return json_body_refuse(body, PROBLEM_UNKNOWN_MEMBER, "unknown member: ", name);
        }
    }
    return PROBLEM_NONE;
}

enum problem_id json_body_text(struct json_body *body, const char *name, size_t max,
                               enum problem_id too_long, struct span *ret)
{
    const json_t *value = json_object_get(body->root, name);

    if (!value) {
        return PROBLEM_NONE;
    }
    if (!json_is_string(value)) {
        return json_body_refuse(body, PROBLEM_INVALID_MEMBER, "must be a string: ", name);
    }
    if (json_string_length(value) > max) {
        snprintf(body->detail, sizeof(body->detail), "%s is longer than %zu bytes", name, max);
        return too_long;
    }
    *ret = (struct span){json_string_value(value), json_string_length(value)};
    return PROBLEM_NONE;
}

void json_body_done(struct json_body *body)
{
    json_decref(body->root);
    body->root = NULL;
}
