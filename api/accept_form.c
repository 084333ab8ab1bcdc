/* Reads accept requests. jansson decides what is valid JSON and gives the texts; jsmn finds where
 * `model` and `payload` stand, since they reach the target as the client wrote them (contract §3).
 */
#include "api/accept_form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/accept_digest.h"
#include "api/json_tokens.h"
#include "common/core/utf8.h"

static enum problem_id refuse(struct accept_form *form, enum problem_id problem, const char *what,
                              const char *name)
{
    snprintf(form->detail, sizeof(form->detail), "%s%.100s", what, name);
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
            if (++depth > ACCEPT_DEPTH_MAX) {
                return true;
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static enum problem_id parse(const struct accept_source *source, struct accept_form *form)
{
    json_error_t error;

    if (source->body.len == 0) {
        return PROBLEM_BODY_MISSING;
    }
    if (is_too_deep(source->body)) {
        return PROBLEM_JSON_TOO_DEEP;
    }
    form->root =
        json_loadb(source->body.ptr, source->body.len,
                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    if (!form->root) {
        snprintf(form->detail, sizeof(form->detail), "%s (at byte %d)", error.text, error.position);
        return json_problem(&error);
    }
    if (!json_is_object(form->root)) {
        return refuse(form, PROBLEM_INVALID_MEMBER, "the body must be one JSON object", "");
    }
    return PROBLEM_NONE;
}

/* ---- members ---- */

static const char *const member_names[] = {"clientMessageID", "userID",  "kind",     "text",
                                           "model",           "payload", "dependsOn"};

static enum problem_id check_names(struct accept_form *form)
{
    const char *name;
    json_t *value;

    json_object_foreach(form->root, name, value)
    {
        size_t i = 0;

        while (i < sizeof(member_names) / sizeof(member_names[0]) &&
               strcmp(name, member_names[i]) != 0) {
            i++;
        }
        if (i == sizeof(member_names) / sizeof(member_names[0])) {
            return refuse(form, PROBLEM_UNKNOWN_MEMBER, "unknown member: ", name);
        }
    }
    return PROBLEM_NONE;
}

static enum problem_id read_text(struct accept_form *form, const char *name, size_t max,
                                 enum problem_id too_long, struct span *ret)
{
    const json_t *value = json_object_get(form->root, name);

    if (!value) {
        return PROBLEM_NONE;
    }
    if (!json_is_string(value)) {
        return refuse(form, PROBLEM_INVALID_MEMBER, "must be a string: ", name);
    }
    if (json_string_length(value) > max) {
        snprintf(form->detail, sizeof(form->detail), "%s is longer than %zu bytes", name, max);
        return too_long;
    }
    *ret = (struct span){json_string_value(value), json_string_length(value)};
    return PROBLEM_NONE;
}

static enum problem_id read_kind(struct accept_form *form)
{
    struct span kind = span_of(KIND_PROMPT);
    const enum problem_id problem =
        read_text(form, "kind", KIND_NAME_MAX, PROBLEM_INVALID_MEMBER, &kind);

    if (problem != PROBLEM_NONE) {
        return problem;
    }
    bool is_name = kind.len > 0;

    for (size_t i = 0; i < kind.len; i++) {
        const char c = kind.ptr[i];
        const bool is_letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        is_name &= is_letter || (c != '\0' && strchr("._:-", c));
    }
    if (!is_name) {
        return refuse(form, PROBLEM_INVALID_MEMBER,
                      "kind must be 1 to 64 of letters, digits and . _ : -", "");
    }
    form->body.kind = kind;
    return PROBLEM_NONE;
}

static enum problem_id read_depends_on(struct accept_form *form)
{
    const json_t *value = json_object_get(form->root, "dependsOn");
    const json_t *id;
    size_t i;

    if (!value) {
        return PROBLEM_NONE;
    }
    if (!json_is_array(value)) {
        return refuse(form, PROBLEM_INVALID_MEMBER, "must be an array of entry IDs: dependsOn", "");
    }
    json_array_foreach(value, i, id)
    {
        if (!json_is_string(id)) {
            return refuse(form, PROBLEM_INVALID_MEMBER, "must be an array of entry IDs: dependsOn",
                          "");
        }
    }
    return json_array_size(value) == 0 ? PROBLEM_NONE : PROBLEM_DEPENDENCIES_UNSUPPORTED;
}

/* `model` and `payload` are taken as they stand. */
static enum problem_id find_raw(const struct accept_source *source, struct accept_form *form,
                                struct json_tokens *tokens)
{
    const enum problem_id problem =
        json_tokens_read(tokens, source->body) < 0 ? PROBLEM_INTERNAL : PROBLEM_NONE;

    for (int i = 1; problem == PROBLEM_NONE && i + 1 < tokens->count; i++) {
        const jsmntok_t *token = &tokens->all[i];
        const struct span name = {source->body.ptr + token->start,
                                  (size_t)(token->end - token->start)};

        if (token->parent != 0 || token->type != JSMN_STRING || token->size != 1) {
            continue; /* only names of the outermost object */
        }
        if (span_equal(name, span_of("model"))) {
            tokens->model = i + 1;
            form->body.model = json_tokens_raw(source->body, token + 1);
        } else if (span_equal(name, span_of("payload"))) {
            tokens->payload = i + 1;
            form->body.payload = json_tokens_raw(source->body, token + 1);
        }
    }
    return problem;
}

static enum problem_id check_raw(const struct accept_source *source, struct accept_form *form,
                                 const char *name, struct span raw)
{
    const json_t *value = json_object_get(form->root, name);

    if (!value) {
        return PROBLEM_NONE;
    }
    if (json_is_null(value)) {
        return refuse(form, PROBLEM_INVALID_MEMBER, "must not be null: ", name);
    }
    if (raw.len == 0) {
        return refuse(form, PROBLEM_INVALID_MEMBER,
                      "its name must be written without escapes: ", name);
    }
    if (raw.len > source->max_text_bytes) {
        snprintf(form->detail, sizeof(form->detail), "%s is longer than %zu bytes", name,
                 source->max_text_bytes);
        return PROBLEM_TOO_LARGE;
    }
    return PROBLEM_NONE;
}

/* The header may carry the clientMessageID (contract §7). */
static enum problem_id read_key(const struct accept_source *source, struct accept_form *form)
{
    const struct span key = source->idempotency_key;
    struct span *cmid = &form->body.client_message_id;

    if (!key.ptr) {
        return PROBLEM_NONE;
    }
    if (key.len == 0 || key.len > CMID_MAX || !utf8_is_valid(key.ptr, key.len)) {
        return refuse(form, PROBLEM_INVALID_HEADER,
                      "Idempotency-Key must be 1 to 256 bytes of UTF-8", "");
    }
    if (json_object_get(form->root, "clientMessageID") && !span_equal(key, *cmid)) {
        return PROBLEM_KEY_MISMATCH;
    }
    *cmid = key;
    return PROBLEM_NONE;
}

static enum problem_id read_members(const struct accept_source *source, struct accept_form *form,
                                    struct json_tokens *tokens)
{
    struct entry_body *body = &form->body;
    enum problem_id problem = read_text(form, "clientMessageID", CMID_MAX, PROBLEM_INVALID_MEMBER,
                                        &body->client_message_id);

    problem = problem != PROBLEM_NONE
                  ? problem
                  : read_text(form, "userID", USER_ID_MAX, PROBLEM_INVALID_MEMBER, &body->user_id);
    problem = problem != PROBLEM_NONE ? problem : read_kind(form);
    problem = problem != PROBLEM_NONE
                  ? problem
                  : read_text(form, "text", source->max_text_bytes, PROBLEM_TOO_LARGE, &body->text);
    body->has_text = json_object_get(form->root, "text") != NULL;
    problem = problem != PROBLEM_NONE ? problem : find_raw(source, form, tokens);
    problem = problem != PROBLEM_NONE ? problem : check_raw(source, form, "model", body->model);
    problem = problem != PROBLEM_NONE ? problem : check_raw(source, form, "payload", body->payload);
    problem = problem != PROBLEM_NONE ? problem : read_depends_on(form);
    problem = problem != PROBLEM_NONE ? problem : read_key(source, form);
    if (problem == PROBLEM_NONE && !body->has_text && body->payload.len == 0) {
        problem = refuse(form, PROBLEM_MISSING_MEMBER,
                         json_object_get(form->root, "kind") ? "payload (or text)"
                                                             : "text (or kind and payload)",
                         "");
    }
    return problem;
}

static enum problem_id make_digest(const struct accept_source *source, struct accept_form *form,
                                   const struct json_tokens *tokens)
{
    return accept_digest_make(&form->body, source->body, tokens, form->digest) < 0
               ? PROBLEM_INTERNAL
               : PROBLEM_NONE;
}

enum problem_id accept_form_read(const struct accept_source *source, struct accept_form *ret)
{
    struct json_tokens tokens;
    enum problem_id problem;

    json_tokens_init(&tokens);
    *ret = (struct accept_form){0};
    problem = parse(source, ret);
    problem = problem != PROBLEM_NONE ? problem : check_names(ret);
    problem = problem != PROBLEM_NONE ? problem : read_members(source, ret, &tokens);
    problem = problem != PROBLEM_NONE ? problem : make_digest(source, ret, &tokens);
    ret->body.traceparent = source->traceparent;
    json_tokens_done(&tokens);
    return problem;
}

void accept_form_done(struct accept_form *form)
{
    json_decref(form->root);
    form->root = NULL;
}

const json_t *accept_form_payload(const struct accept_form *form)
{
    return json_object_get(form->root, "payload");
}
