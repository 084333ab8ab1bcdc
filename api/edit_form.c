/* Raw members stand as they were sent: numbers keep their spelling. */
#include "api/edit_form.h"

#include <errno.h>

#include "common/core/keys.h"
#include "common/core/payload_merge.h"

#define RESULT_MAX (64U << 10)
#define ID_MAX     64

/* A value of the outermost object as it stands; empty if it is absent. */
static struct span raw_member(const struct json_tokens *tokens, struct span text, const char *name)
{
    for (int i = 1; i + 1 < tokens->count; i++) {
        const jsmntok_t *token = &tokens->all[i];
        const struct span at = {text.ptr + token->start, (size_t)(token->end - token->start)};

        if (token->parent == 0 && token->type == JSMN_STRING && token->size == 1 &&
            span_equal(at, span_of(name))) {
            return json_tokens_raw(text, token + 1);
        }
    }
    return (struct span){"", 0};
}

static enum problem_id check_edit(struct edit_form *form, size_t max)
{
    const struct entry_patch *patch = &form->patch;
    const json_t *text = json_object_get(form->body.root, "text");
    const json_t *payload = json_object_get(form->body.root, "payload");

    if (json_object_size(form->body.root) == 0) {
        return json_body_refuse(&form->body, PROBLEM_MISSING_MEMBER, "text, model or payload", "");
    }
    if (text && !json_is_string(text)) {
        return json_body_refuse(&form->body, PROBLEM_INVALID_MEMBER, "must be a string: ", "text");
    }
    if (payload && !json_is_object(payload)) {
        return json_body_refuse(&form->body, PROBLEM_INVALID_MEMBER,
                                "must be an object, a merge patch: ", "payload");
    }
    if (patch->text.len > max + 2 || patch->model.len > max || patch->payload.len > max) {
        return json_body_refuse(&form->body, PROBLEM_TOO_LARGE, "", "");
    }
    return PROBLEM_NONE;
}

enum problem_id edit_form_read(struct span text, size_t max_text_bytes, struct edit_form *ret)
{
    static const char *const names[] = {"text", "model", "payload"};
    enum problem_id problem;

    *ret = (struct edit_form){0};
    json_tokens_init(&ret->tokens);
    problem = json_body_parse(&ret->body, text);
    problem = problem != PROBLEM_NONE ? problem : json_body_check_names(&ret->body, names, 3);
    if (problem == PROBLEM_NONE && json_tokens_read(&ret->tokens, text) < 0) {
        problem = PROBLEM_INTERNAL;
    }
    if (problem != PROBLEM_NONE) {
        return problem;
    }
    ret->patch = (struct entry_patch){
        .text = raw_member(&ret->tokens, text, "text"),
        .model = raw_member(&ret->tokens, text, "model"),
        .payload = raw_member(&ret->tokens, text, "payload"),
    };
    return check_edit(ret, max_text_bytes);
}

void edit_form_done(struct edit_form *form)
{
    json_tokens_done(&form->tokens);
    json_body_done(&form->body);
}

static enum problem_id check_who(struct confirm_form *form)
{
    const bool has_id = form->entry_id.len > 0;
    const bool has_key = form->session.len > 0 && form->client_message_id.len > 0;

    if (has_id == has_key ||
        (has_id && (form->session.len > 0 || form->client_message_id.len > 0))) {
        return json_body_refuse(&form->body, PROBLEM_MISSING_MEMBER,
                                "entryID, or sessionID and clientMessageID", "");
    }
    if (has_key && !session_name_is_valid(form->session.ptr, form->session.len)) {
        return json_body_refuse(&form->body, PROBLEM_INVALID_MEMBER,
                                "is no session: ", "sessionID");
    }
    return PROBLEM_NONE;
}

static enum problem_id read_result(struct confirm_form *form, struct span text)
{
    const json_t *result = json_object_get(form->body.root, "result");
    struct json_tokens tokens;

    if (!result) {
        return PROBLEM_NONE;
    }
    if (!json_is_object(result)) {
        return json_body_refuse(&form->body, PROBLEM_INVALID_MEMBER,
                                "must be an object: ", "result");
    }
    json_tokens_init(&tokens);
    int err = json_tokens_read(&tokens, text);

    err = err == 0 ? payload_result(raw_member(&tokens, text, "result"), &form->result) : err;
    json_tokens_done(&tokens);
    if (err == -ENOBUFS) {
        return json_body_refuse(&form->body, PROBLEM_TOO_LARGE, "result is longer than 64 KiB", "");
    }
    return err == -ENOMEM ? PROBLEM_INTERNAL : PROBLEM_NONE; /* one that knows nothing is none */
}

enum problem_id confirm_form_read(struct span text, struct confirm_form *ret)
{
    static const char *const names[] = {"entryID", "sessionID", "clientMessageID", "result"};
    enum problem_id problem;

    *ret = (struct confirm_form){0};
    buf_init(&ret->result, RESULT_MAX);
    problem = json_body_parse(&ret->body, text);
    problem = problem != PROBLEM_NONE ? problem : json_body_check_names(&ret->body, names, 4);
    problem = problem != PROBLEM_NONE ? problem
                                      : json_body_text(&ret->body, "entryID", ID_MAX,
                                                       PROBLEM_INVALID_MEMBER, &ret->entry_id);
    problem = problem != PROBLEM_NONE ? problem
                                      : json_body_text(&ret->body, "sessionID", SESSION_MAX,
                                                       PROBLEM_INVALID_MEMBER, &ret->session);
    problem = problem != PROBLEM_NONE
                  ? problem
                  : json_body_text(&ret->body, "clientMessageID", CMID_MAX, PROBLEM_INVALID_MEMBER,
                                   &ret->client_message_id);
    problem = problem != PROBLEM_NONE ? problem : check_who(ret);
    return problem != PROBLEM_NONE ? problem : read_result(ret, text);
}

void confirm_form_done(struct confirm_form *form)
{
    buf_done(&form->result);
    json_body_done(&form->body);
}
