/* Builds a ledger's requests. The model goes as the client wrote it. */
#include "worker/ledger_request.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/transfer.h"

uint64_t ledger_last_row(const struct entry *entry, uint32_t attempts)
{
    return (uint64_t)entry->attempt_base + attempts;
}

static int append_quoted(struct buf *out, struct span text)
{
    json_t *string = json_stringn(text.ptr, text.len);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    int err = quoted ? buf_append_str(out, quoted) : -ENOMEM;

    json_decref(string);
    free(quoted);
    return err;
}

static int append_member(struct buf *out, const char *before, struct span text)
{
    int err = buf_append_str(out, before);

    return err == 0 ? append_quoted(out, text) : err;
}

/* Entries have a text, or a payload with one. */
static int find_text(const struct entry_body *body, json_t **ret_owner, struct span *ret)
{
    *ret_owner = NULL;
    if (body->has_text) {
        *ret = body->text;
        return 0;
    }
    json_t *payload =
        json_loadb(body->payload.ptr, body->payload.len, JSON_DECODE_INT_AS_REAL, NULL);
    const json_t *text = json_object_get(payload, "text");

    if (!json_is_string(text)) {
        json_decref(payload);
        return -EINVAL;
    }
    *ret = (struct span){json_string_value(text), json_string_length(text)};
    *ret_owner = payload;
    return 0;
}

static int append_deliver(struct buf *out, const struct entry *entry, uint64_t row,
                          struct span prompt)
{
    int err = append_member(out, "{\"sessionId\":", entry->session);

    err = err == 0 ? append_member(out, ",\"entryId\":", entry->id) : err;
    err = err == 0 ? buf_appendf(out, ",\"attempt\":%" PRIu64, row) : err;
    err = err == 0 ? append_member(out, ",\"parts\":[{\"type\":\"text\",\"text\":", prompt) : err;
    err = err == 0 ? buf_append_str(out, "}]") : err;
    if (err == 0 && entry->body.model.len > 0) {
        err = buf_append_str(out, ",\"model\":");
        err = err == 0 ? buf_append(out, entry->body.model.ptr, entry->body.model.len) : err;
    }
    return err == 0 ? buf_append_str(out, "}") : err;
}

static size_t without_slashes(const char *url)
{
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    return len;
}

static int append_url(const struct ledger_address *address, const char *procedure,
                      struct http_request_text *text)
{
    const char *base = address->target->url;
    const char *path = address->path ? address->path : "";
    int err;

    if (!base || base[0] == '\0') {
        snprintf(text->problem, sizeof(text->problem),
                 "no target is configured (setting target.url)");
        return -EINVAL;
    }
    err = buf_append(&text->url, base, without_slashes(base));
    if (err == 0 && path[0] != '\0' && path[0] != '/') {
        err = buf_append_str(&text->url, "/");
    }
    err = err == 0 ? buf_append(&text->url, path, without_slashes(path)) : err;
    return err == 0 ? buf_appendf(&text->url, "/%s", procedure) : err;
}

static void fill(const struct ledger_address *address, int64_t timeout_ms,
                 const struct http_request_text *text, struct transfer_request *ret)
{
    *ret = (struct transfer_request){
        .method = "POST",
        .url = text->url.bytes,
        .body = {text->body.bytes, text->body.len},
        .username = address->target->username,
        .password = address->target->password,
        .timeout_ms = timeout_ms,
        .target = address->target->url,
    };
}

int ledger_request_deliver(const struct ledger_address *address, const struct entry *entry,
                           uint64_t row, uint32_t sends, int64_t timeout_ms,
                           struct http_request_text *text, struct transfer_request *ret)
{
    json_t *owner;
    struct span prompt;
    int err = find_text(&entry->body, &owner, &prompt);

    if (err < 0) {
        snprintf(text->problem, sizeof(text->problem),
                 "the entry has neither a text nor a payload with one");
        return err;
    }
    err = append_deliver(&text->body, entry, row, prompt);
    json_decref(owner);
    err = err == 0 ? append_url(address, "Deliver", text) : err;
    if (err < 0) {
        return err;
    }
    fill(address, timeout_ms, text, ret);
    ret->headers[ret->header_count++] = "Connect-Protocol-Version: 1";
    ret->subject = entry->id;
    return http_request_add_headers(entry, sends, "application/json", address->target, text, ret);
}

int ledger_request_status(const struct ledger_address *address, const struct entry *entry,
                          uint64_t row, int64_t timeout_ms, struct http_request_text *text,
                          struct transfer_request *ret)
{
    int err = append_member(&text->body, "{\"entryId\":", entry->id);

    err = err == 0 ? buf_appendf(&text->body, ",\"attempt\":%" PRIu64 "}", row) : err;
    err = err == 0 ? append_url(address, "GetDeliveryStatus", text) : err;
    if (err < 0) {
        return err;
    }
    fill(address, timeout_ms, text, ret);
    ret->is_lookup = true;
    ret->headers[ret->header_count++] = "Content-Type: application/json";
    ret->headers[ret->header_count++] = "Connect-Protocol-Version: 1";
    return 0;
}
