/* Reads accept requests. jansson decides what is valid JSON and gives the texts; jsmn finds where
 * `model` and `payload` stand, since they reach the target as the client wrote them (contract §3).
 */
#include "api/accept_form.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define JSMN_STATIC
#define JSMN_PARENT_LINKS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <jsmn.h>
#pragma GCC diagnostic pop

#include "common/core/utf8.h"

#define TOKENS_ON_STACK 64

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

/* Where the top-level members stand in the text. The text is valid: jsmn, which is lenient, can't
 * misread it. */
static enum problem_id find_raw(const struct accept_source *source, struct accept_form *form)
{
    static const char *const raw_names[] = {"model", "payload"};
    struct span *const raw[] = {&form->body.model, &form->body.payload};
    jsmntok_t few[TOKENS_ON_STACK];
    jsmntok_t *tokens = few;
    jsmn_parser parser;
    int count;

    if (!json_object_get(form->root, "model") && !json_object_get(form->root, "payload")) {
        return PROBLEM_NONE;
    }
    jsmn_init(&parser);
    count = jsmn_parse(&parser, source->body.ptr, source->body.len, few, TOKENS_ON_STACK);
    if (count == JSMN_ERROR_NOMEM) {
        jsmn_init(&parser);
        count = jsmn_parse(&parser, source->body.ptr, source->body.len, NULL, 0);
        tokens = count > 0 ? calloc((size_t)count, sizeof(*tokens)) : NULL;
        if (!tokens) {
            return PROBLEM_INTERNAL;
        }
        jsmn_init(&parser);
        count = jsmn_parse(&parser, source->body.ptr, source->body.len, tokens, (unsigned)count);
    }
    for (int i = 1; i + 1 < count; i++) {
        const struct span name = {source->body.ptr + tokens[i].start,
                                  (size_t)(tokens[i].end - tokens[i].start)};

        if (tokens[i].parent != 0 || tokens[i].type != JSMN_STRING || tokens[i].size != 1) {
            continue; /* only names of the outermost object */
        }
        for (size_t m = 0; m < 2; m++) {
            if (span_equal(name, span_of(raw_names[m]))) {
                /* A string token's ends stand inside its quotes. */
                const int quote = tokens[i + 1].type == JSMN_STRING ? 1 : 0;

                *raw[m] =
                    (struct span){source->body.ptr + tokens[i + 1].start - quote,
                                  (size_t)(tokens[i + 1].end - tokens[i + 1].start + 2 * quote)};
            }
        }
    }
    if (tokens != few) {
        free(tokens);
    }
    return PROBLEM_NONE;
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

static enum problem_id read_members(const struct accept_source *source, struct accept_form *form)
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
    problem = problem != PROBLEM_NONE ? problem : find_raw(source, form);
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

/* ---- digest ---- */

static void hash_part(crypto_generichash_state *state, char tag, struct span part)
{
    char head[32];
    const int len = snprintf(head, sizeof(head), "%c%zu:", tag, part.len);

    (void)crypto_generichash_update(state, (const unsigned char *)head, (unsigned long long)len);
    (void)crypto_generichash_update(state, (const unsigned char *)part.ptr, part.len);
}

/* JSON without the blanks between its tokens. Numbers and strings stay as they were spelt: no
 * number is too large. */
static void hash_json(crypto_generichash_state *state, char tag, struct span json)
{
    bool in_string = false;
    size_t from = 0;

    hash_part(state, tag, (struct span){"", 0});
    for (size_t i = 0; i < json.len; i++) {
        const char c = json.ptr[i];

        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            (void)crypto_generichash_update(state, (const unsigned char *)json.ptr + from,
                                            i - from);
            from = i + 1;
        }
    }
    (void)crypto_generichash_update(state, (const unsigned char *)json.ptr + from, json.len - from);
}

/* Over everything that was accepted but the clientMessageID. Stored for as long as that is
 * remembered: a change here turns repeats into 422. */
static void make_digest(struct accept_form *form)
{
    const struct entry_body *body = &form->body;
    unsigned char hash[ACCEPT_DIGEST_LEN / 2];
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    hash_part(&state, 'k', body->kind);
    hash_part(&state, 'u', body->user_id);
    if (body->has_text) {
        hash_part(&state, 't', body->text);
    }
    if (body->model.len > 0) {
        hash_json(&state, 'm', body->model);
    }
    if (body->payload.len > 0) {
        hash_json(&state, 'p', body->payload);
    }
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    (void)sodium_bin2hex(form->digest, sizeof(form->digest), hash, sizeof(hash));
}

enum problem_id accept_form_read(const struct accept_source *source, struct accept_form *ret)
{
    *ret = (struct accept_form){0};
    enum problem_id problem = parse(source, ret);

    problem = problem != PROBLEM_NONE ? problem : check_names(ret);
    problem = problem != PROBLEM_NONE ? problem : read_members(source, ret);
    if (problem == PROBLEM_NONE) {
        make_digest(ret);
    }
    ret->body.traceparent = source->traceparent;
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
