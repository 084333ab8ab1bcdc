/* Reads targets. */
#include "worker/target.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/core/template.h"

#define URL_MAX 4096

struct target target_of_settings(const struct settings *settings)
{
    const struct text_list *secrets = &settings->target_secrets;
    struct target target = {
        .url = settings->target_url,
        .username = settings->target_username,
        .password = settings->target_password,
    };

    for (size_t i = 0; i < secrets->count && i < WEBHOOK_SECRETS_MAX; i++) {
        target.secrets[target.secret_count++] = secrets->items[i];
    }
    return target;
}

static int executor_of_name(const char *name, enum executor_id *ret)
{
    static const struct {
        const char *name;
        enum executor_id executor;
    } rows[] = {
        {"http", EXECUTOR_HTTP}, {"opencode", EXECUTOR_OPENCODE}, {"ledger", EXECUTOR_LEDGER}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(name, rows[i].name) == 0) {
            *ret = rows[i].executor;
            return 0;
        }
    }
    return -EBADMSG;
}

static int give_workspace(void *arg, struct span place, struct span *ret)
{
    if (!span_equal(place, span_of("workspace"))) {
        return -ENOENT;
    }
    *ret = *(struct span *)arg;
    return 0;
}

/* The configured target's URL may name the workspace: `http://{workspace}.agents:4096`. */
static int fill_fallback(struct span workspace, struct target *ret, struct json_t **ret_owner)
{
    struct span place;
    struct buf url;
    int err;

    if (!ret->url || !strchr(ret->url, '{')) {
        return 0;
    }
    buf_init(&url, URL_MAX);
    err = template_expand(ret->url, TEMPLATE_PERCENT, give_workspace, &workspace, &url, &place);
    *ret_owner = err == 0 ? json_stringn(url.bytes, url.len) : NULL;
    ret->url = json_string_value(*ret_owner);
    buf_done(&url);
    return ret->url ? 0 : -EBADMSG;
}

static bool is_absent_or_string(const json_t *value)
{
    return !value || json_is_string(value);
}

/* What is there must be secrets: an attempt that should be signed is not sent without. */
static int read_secrets(const json_t *secrets, struct target *ret)
{
    const json_t *secret;
    size_t i;

    if (!secrets) {
        return 0;
    }
    if (!json_is_array(secrets) || json_array_size(secrets) > WEBHOOK_SECRETS_MAX) {
        return -EBADMSG;
    }
    json_array_foreach(secrets, i, secret)
    {
        struct webhook_key key;
        const char *text = json_string_value(secret);
        const int err = text ? webhook_secret_read(text, &key) : -EINVAL;

        webhook_key_wipe(&key);
        if (err < 0) {
            return -EBADMSG;
        }
        ret->secrets[ret->secret_count++] = text;
    }
    return 0;
}

int target_read(struct span conf, const struct target *fallback, struct span workspace,
                struct target *ret, struct json_t **ret_owner)
{
    *ret = *fallback;
    *ret_owner = NULL;
    if (conf.len == 0) {
        return fill_fallback(workspace, ret, ret_owner);
    }
    json_t *root = json_loadb(conf.ptr, conf.len, 0, NULL);
    const json_t *url = json_object_get(root, "url");
    const json_t *username = json_object_get(root, "username");
    const json_t *password = json_object_get(root, "password");
    const json_t *executor = json_object_get(root, "executor");

    *ret = (struct target){0};
    if (!json_is_string(url) || !is_absent_or_string(username) || !is_absent_or_string(password) ||
        !is_absent_or_string(executor) ||
        (executor && executor_of_name(json_string_value(executor), &ret->executor) < 0) ||
        read_secrets(json_object_get(root, "secrets"), ret) < 0) {
        *ret = (struct target){0};
        json_decref(root);
        return -EBADMSG;
    }
    ret->url = json_string_value(url);
    ret->username = json_string_value(username);
    ret->password = json_string_value(password);
    ret->has_executor = executor != NULL;
    *ret_owner = root;
    return 0;
}

enum executor_id target_executor(const struct target *target, const struct kind *kind)
{
    const bool may_change = kind->executor != EXECUTOR_HTTP && target->has_executor &&
                            target->executor != EXECUTOR_HTTP;

    return may_change ? target->executor : kind->executor;
}
