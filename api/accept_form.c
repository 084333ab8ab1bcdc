/* Reads accept requests. jansson decides what is valid JSON and gives the texts; jsmn finds where
 * `model` and `payload` stand, since they reach the target as the client wrote them (contract §3).
 */
#include "api/accept_form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/accept_digest.h"
#include "api/json_tokens.h"
#include "common/core/ids.h"
#include "common/core/utf8.h"

/* The last two: of a line of a batch only. */
static const char *const member_names[] = {"clientMessageID", "userID",  "kind",      "text",
                                           "model",           "payload", "dependsOn", "workspaceID",
                                           "sessionID"};

#define NAMES_OF_LINES 2

static enum problem_id read_kind(struct accept_form *form)
{
    struct span kind = span_of(KIND_PROMPT);
    const enum problem_id problem =
        json_body_text(&form->json, "kind", KIND_NAME_MAX, PROBLEM_INVALID_MEMBER, &kind);

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
        return json_body_refuse(&form->json, PROBLEM_INVALID_MEMBER,
                                "kind must be 1 to 64 of letters, digits and . _ : -", "");
    }
    form->body.kind = kind;
    return PROBLEM_NONE;
}

static enum problem_id read_depends_on(struct accept_form *form)
{
    const json_t *value = json_object_get(form->json.root, "dependsOn");
    const json_t *id;
    size_t i;

    if (!value) {
        return PROBLEM_NONE;
    }
    if (!json_is_array(value)) {
        return json_body_refuse(&form->json, PROBLEM_INVALID_MEMBER,
                                "must be an array of entry IDs: dependsOn", "");
    }
    if (json_array_size(value) > DEPENDS_ON_MAX) {
        return json_body_refuse(&form->json, PROBLEM_INVALID_MEMBER,
                                "names more than 64 entries: dependsOn", "");
    }
    json_array_foreach(value, i, id)
    {
        const struct span text = {json_string_value(id), json_string_length(id)};

        if (!json_is_string(id) || !entry_id_is_valid(text.ptr, text.len)) {
            return json_body_refuse(&form->json, PROBLEM_INVALID_MEMBER,
                                    "must be an array of entry IDs: dependsOn", "");
        }
        form->body.depends_on[form->body.depends_on_count++] = text;
    }
    return PROBLEM_NONE;
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
    const json_t *value = json_object_get(form->json.root, name);

    if (!value) {
        return PROBLEM_NONE;
    }
    if (json_is_null(value)) {
        return json_body_refuse(&form->json, PROBLEM_INVALID_MEMBER, "must not be null: ", name);
    }
    if (raw.len == 0) {
        return json_body_refuse(&form->json, PROBLEM_INVALID_MEMBER,
                                "its name must be written without escapes: ", name);
    }
    if (raw.len > source->max_text_bytes) {
        snprintf(form->json.detail, sizeof(form->json.detail), "%s is longer than %zu bytes", name,
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
        return json_body_refuse(&form->json, PROBLEM_INVALID_HEADER,
                                "Idempotency-Key must be 1 to 256 bytes of UTF-8", "");
    }
    if (json_object_get(form->json.root, "clientMessageID") && !span_equal(key, *cmid)) {
        return PROBLEM_KEY_MISMATCH;
    }
    *cmid = key;
    return PROBLEM_NONE;
}

static enum problem_id read_members(const struct accept_source *source, struct accept_form *form,
                                    struct json_tokens *tokens)
{
    struct entry_body *body = &form->body;
    enum problem_id problem = json_body_text(&form->json, "clientMessageID", CMID_MAX,
                                             PROBLEM_INVALID_MEMBER, &body->client_message_id);

    problem = problem != PROBLEM_NONE ? problem
                                      : json_body_text(&form->json, "userID", USER_ID_MAX,
                                                       PROBLEM_INVALID_MEMBER, &body->user_id);
    problem = problem != PROBLEM_NONE ? problem : read_kind(form);
    problem = problem != PROBLEM_NONE ? problem
                                      : json_body_text(&form->json, "text", source->max_text_bytes,
                                                       PROBLEM_TOO_LARGE, &body->text);
    body->has_text = json_object_get(form->json.root, "text") != NULL;
    problem = problem != PROBLEM_NONE ? problem : find_raw(source, form, tokens);
    problem = problem != PROBLEM_NONE ? problem : check_raw(source, form, "model", body->model);
    problem = problem != PROBLEM_NONE ? problem : check_raw(source, form, "payload", body->payload);
    problem = problem != PROBLEM_NONE ? problem : read_depends_on(form);
    problem = problem != PROBLEM_NONE ? problem : read_key(source, form);
    if (problem == PROBLEM_NONE && !body->has_text && body->payload.len == 0) {
        problem = json_body_refuse(&form->json, PROBLEM_MISSING_MEMBER,
                                   json_object_get(form->json.root, "kind")
                                       ? "payload (or text)"
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

/* Where it goes: what stands in the path of a message that comes alone. */
static enum problem_id read_place(struct accept_form *form)
{
    enum problem_id problem = json_body_text(&form->json, "workspaceID", WORKSPACE_MAX,
                                             PROBLEM_INVALID_NAME, &form->workspace);

    problem = problem != PROBLEM_NONE ? problem
                                      : json_body_text(&form->json, "sessionID", SESSION_MAX,
                                                       PROBLEM_INVALID_NAME, &form->session);
    if (problem != PROBLEM_NONE) {
        return problem;
    }
    if (!form->workspace.ptr) {
        return json_body_refuse(&form->json, PROBLEM_MISSING_MEMBER, "workspaceID", "");
    }
    if (!workspace_name_is_valid(form->workspace.ptr, form->workspace.len) ||
        (form->session.ptr && !session_name_is_valid(form->session.ptr, form->session.len))) {
        return PROBLEM_INVALID_NAME;
    }
    return PROBLEM_NONE;
}

enum problem_id accept_form_read(const struct accept_source *source, struct accept_form *ret)
{
    struct json_tokens tokens;
    enum problem_id problem;

    json_tokens_init(&tokens);
    *ret = (struct accept_form){0};
    problem = json_body_parse(&ret->json, source->body);
    problem = problem != PROBLEM_NONE
                  ? problem
                  : json_body_check_names(&ret->json, member_names,
                                          sizeof(member_names) / sizeof(member_names[0]) -
                                              (source->is_line ? 0 : NAMES_OF_LINES));
    problem = problem == PROBLEM_NONE && source->is_line ? read_place(ret) : problem;
    problem = problem != PROBLEM_NONE ? problem : read_members(source, ret, &tokens);
    problem = problem != PROBLEM_NONE ? problem : make_digest(source, ret, &tokens);
    ret->body.traceparent = source->traceparent;
    json_tokens_done(&tokens);
    return problem;
}

void accept_form_done(struct accept_form *form)
{
    json_body_done(&form->json);
}

const json_t *accept_form_payload(const struct accept_form *form)
{
    return json_object_get(form->json.root, "payload");
}
