/* Writes requests to opencode. */
#include "worker/opencode_request.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/keys.h"
#include "worker/opencode_ids.h"
#include "worker/transfer.h"

/* Who opencode asks for unless it was told another name. */
#define SERVERS_USER "opencode"

static int write_base(const struct target *target, struct buf *out)
{
    size_t len = target->url ? strlen(target->url) : 0;

    while (len > 0 && target->url[len - 1] == '/') {
        len--;
    }
    return len == 0 ? -EINVAL : buf_append(out, target->url, len);
}

int opencode_health_url(const struct target *target, struct buf *out)
{
    int err = write_base(target, out);

    return err == 0 ? buf_append_str(out, "/global/health") : err;
}

int opencode_message_url(const struct target *target, struct span session, const char *rest,
                         struct buf *out)
{
    char encoded[SESSION_ENC_MAX + 1];
    const int64_t len = percent_encode(session.ptr, session.len, encoded, sizeof(encoded));
    int err = len < 0 ? -EINVAL : write_base(target, out);

    return err == 0 ? buf_appendf(out, "/session/%.*s/message%s", (int)len, encoded, rest) : err;
}

int opencode_prompt_body(const struct entry *entry, const struct opencode_ids *ids, struct buf *out)
{
    const struct entry_body *body = &entry->body;

    if (!body->has_text) {
        return -EINVAL;
    }
    json_t *string = json_stringn(body->text.ptr, body->text.len);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    int err = quoted ? buf_append_str(out, "{") : -ENOMEM;

    json_decref(string);
    if (err == 0 && ids) {
        err = buf_appendf(out, "\"messageID\":\"%s\",", ids->message);
    }
    if (err == 0 && body->model.len > 0) {
        err = buf_append_str(out, "\"model\":");
        err = err == 0 ? buf_append(out, body->model.ptr, body->model.len) : err;
        err = err == 0 ? buf_append_str(out, ",") : err;
    }
    err = err == 0 ? buf_append_str(out, "\"parts\":[{") : err;
    if (err == 0 && ids) {
        err = buf_appendf(out, "\"id\":\"%s\",", ids->part);
    }
    err = err == 0 ? buf_append_str(out, "\"type\":\"text\",\"text\":") : err;
    err = err == 0 ? buf_append_str(out, quoted) : err;
    free(quoted);
    return err == 0 ? buf_append_str(out, "}]}") : err;
}

struct transfer_request opencode_get(const struct target *target, const char *url,
                                     int64_t timeout_ms)
{
    return (struct transfer_request){
        .method = "GET",
        .url = url,
        .username = target->username || !target->password ? target->username : SERVERS_USER,
        .password = target->password,
        .timeout_ms = timeout_ms,
        .target = target->url,
    };
}
