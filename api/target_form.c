/* Checks members one by one, by a table; what is stored is written anew from what was checked. */
#include "api/target_form.h"

#include <stdio.h>
#include <string.h>

#include "api/json_out.h"
#include "common/base/webhook_secret.h"
#include "common/core/target_url.h"

/* Each: NULL, or why the text is refused. */
typedef const char *check_fn(const char *text);

static const char *check_executor(const char *text)
{
    static const char *const names[] = {"http", "opencode", "ledger"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            return NULL;
        }
    }
    return "must be http, opencode or ledger";
}

static const char *check_password(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            return "must not hold control characters";
        }
    }
    return NULL;
}

/* Basic authentication parts name and password at the first colon (RFC 7617). */
static const char *check_username(const char *text)
{
    if (text[0] == '\0' || strchr(text, ':')) {
        return "must not be empty or hold a colon";
    }
    return check_password(text);
}

static const struct {
    const char *name;
    size_t max;
    check_fn *check;
} texts[] = {
    {"url", TARGET_URL_MAX, target_url_refusal},
    {"executor", 16, check_executor},
    {"username", TARGET_USERNAME_MAX, check_username},
    {"password", TARGET_PASSWORD_MAX, check_password},
};

static enum problem_id check_texts(struct json_body *body)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct span value = {0};
        const enum problem_id problem =
            json_body_text(body, texts[i].name, texts[i].max, PROBLEM_INVALID_MEMBER, &value);
        const char *why = problem == PROBLEM_NONE && value.ptr ? texts[i].check(value.ptr) : NULL;

        if (problem != PROBLEM_NONE) {
            return problem;
        }
        if (why) {
            snprintf(body->detail, sizeof(body->detail), "%s %s", texts[i].name, why);
            return PROBLEM_INVALID_MEMBER;
        }
    }
    return PROBLEM_NONE;
}

static bool is_secret(const json_t *value)
{
    const char *text = json_string_value(value);
    struct webhook_key key;

    if (!text || strlen(text) != json_string_length(value)) {
        return false;
    }
    const bool is_one = webhook_secret_read(text, &key) == 0;

    webhook_key_wipe(&key);
    return is_one;
}

static enum problem_id check_secrets(struct json_body *body)
{
    const json_t *secrets = json_object_get(body->root, "secrets");
    const json_t *secret;
    size_t i;

    if (!secrets) {
        return PROBLEM_NONE;
    }
    if (!json_is_array(secrets) || json_array_size(secrets) > WEBHOOK_SECRETS_MAX) {
        return json_body_refuse(body, PROBLEM_INVALID_MEMBER,
                                "secrets must be an array of at most 8", "");
    }
    json_array_foreach(secrets, i, secret)
    {
        if (!is_secret(secret)) {
            return json_body_refuse(body, PROBLEM_INVALID_MEMBER,
                                    "each of secrets must be " WEBHOOK_SECRET_FORM, "");
        }
    }
    return PROBLEM_NONE;
}

static enum problem_id check(struct json_body *body)
{
    static const char *const names[] = {"url", "executor", "username", "password", "secrets"};
    enum problem_id problem = json_body_check_names(body, names, sizeof(names) / sizeof(names[0]));

    problem = problem != PROBLEM_NONE ? problem : check_texts(body);
    problem = problem != PROBLEM_NONE ? problem : check_secrets(body);
    if (problem == PROBLEM_NONE && !json_object_get(body->root, "url")) {
        problem = json_body_refuse(body, PROBLEM_MISSING_MEMBER, "url", "");
    }
    return problem;
}

enum problem_id target_form_read(struct span text, struct json_body *body, char **ret_stored)
{
    enum problem_id problem = json_body_parse(body, text);

    problem = problem != PROBLEM_NONE ? problem : check(body);
    if (problem != PROBLEM_NONE) {
        return problem;
    }
    char *stored = json_dumps(body->root, JSON_COMPACT);

    if (!stored) {
        return PROBLEM_INTERNAL;
    }
    *ret_stored = stored;
    return PROBLEM_NONE;
}

bool target_form_show(struct span stored, target_circuit_fn *circuit, void *arg, struct buf *out)
{
    json_t *root = json_loadb(stored.ptr, stored.len, 0, NULL);
    static const char *const shown[] = {"url", "executor", "username"};
    const char *url = json_string_value(json_object_get(root, "url"));
    const bool is_target = json_is_object(root);

    if (is_target) {
        json_open(out, '{');
        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
            json_member_text(out, shown[i],
                             span_of(json_string_value(json_object_get(root, shown[i]))));
        }
        json_member_bool(out, "hasPassword", json_is_string(json_object_get(root, "password")));
        json_member_i64(out, "secrets", (int64_t)json_array_size(json_object_get(root, "secrets")));
        json_member_text(out, "circuit", span_of(url ? circuit(url, arg) : NULL));
        json_close(out, '}');
    }
    json_decref(root);
    return is_target;
}
