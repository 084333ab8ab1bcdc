/* Builds requests from kinds. Values of `{payload.a.b}` come from the payload's JSON, read once per
 * request and only if a template asks. A value that is no header text is percent-encoded in
 * headers: nothing a client chose can end one. */
#include "worker/http_request.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/core/keys.h"
#include "common/core/payload_value.h"
#include "common/core/template.h"
#include "worker/transfer.h"
#include "worker/webhook_signature.h"

#define URL_MAX       8192
#define HEADERS_MAX   16384
#define SIGNATURE_MAX 1024
#define BODY_MAX      (256u << 20)

void http_request_text_init(struct http_request_text *text)
{
    buf_init(&text->url, URL_MAX);
    buf_init(&text->body, BODY_MAX);
    buf_init(&text->headers, HEADERS_MAX);
    buf_init(&text->place, URL_MAX);
    text->problem[0] = '\0';
}

void http_request_text_done(struct http_request_text *text)
{
    buf_done(&text->url);
    buf_done(&text->body);
    buf_done(&text->headers);
    buf_done(&text->place);
}

/* ---- values ---- */

struct values {
    struct span workspace;
    const struct entry *entry;
    bool as_json; /* bodies: a value is JSON text */
    bool has_read;
    json_t *payload;
    char *made; /* the last value that had to be made */
    char room[PAYLOAD_VALUE_ROOM];
};

static void values_done(struct values *values)
{
    json_decref(values->payload);
    free(values->made);
}

static const json_t *payload_member(struct values *values, struct span path)
{
    const struct span raw = values->entry->body.payload;

    if (!values->has_read) {
        values->has_read = true;
        values->payload = json_loadb(raw.ptr, raw.len, JSON_DECODE_ANY, NULL);
        if (!values->payload) {
            /* An integer that no C type holds stands somewhere in it. */
            values->payload =
                json_loadb(raw.ptr, raw.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
        }
    }
    return payload_value(values->payload, path);
}

static int give_made(struct values *values, char *made, struct span *ret)
{
    free(values->made);
    values->made = made;
    if (!made) {
        return -ENOENT;
    }
    *ret = span_of(made);
    return 0;
}

static int give_member(struct values *values, const json_t *member, struct span *ret)
{
    if (!member) {
        return -ENOENT;
    }
    if (values->as_json) {
        return give_made(values, json_dumps(member, JSON_ENCODE_ANY | JSON_COMPACT), ret);
    }
    return payload_value_text(member, values->room, ret);
}

static int give_text(struct values *values, struct span text, struct span *ret)
{
    if (!values->as_json) {
        *ret = text;
        return 0;
    }
    json_t *string = json_stringn(text.ptr, text.len);
    char *made = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

    json_decref(string);
    return give_made(values, made, ret);
}

static int lookup_value(void *arg, struct span place, struct span *ret)
{
    static const char payload[] = "payload.";
    struct values *values = arg;
    const struct entry *entry = values->entry;
    const struct {
        const char *name;
        struct span value;
    } plain[] = {
        {"id", entry->id},
        {"clientMessageID", entry->body.client_message_id},
        {"workspace", values->workspace},
        {"session", entry->session},
        {"userID", entry->body.user_id},
    };

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (span_equal(place, span_of(plain[i].name))) {
            return give_text(values, plain[i].value, ret);
        }
    }
    if (span_equal(place, span_of("text")) && entry->body.has_text) {
        return give_text(values, entry->body.text, ret);
    }
    if (span_equal(place, span_of("payload")) && values->as_json) {
        *ret = entry->body.payload;
        return ret->len > 0 ? 0 : -ENOENT;
    }
    if (place.len > sizeof(payload) - 1 && memcmp(place.ptr, payload, sizeof(payload) - 1) == 0) {
        const struct span path = {place.ptr + sizeof(payload) - 1,
                                  place.len - (sizeof(payload) - 1)};

        return give_member(values, payload_member(values, path), ret);
    }
    return -ENOENT;
}

/* ---- parts of a request ---- */

static int fill(const char *template, enum template_escape escape, struct span workspace,
                const struct entry *entry, struct buf *out, struct http_request_text *text)
{
    struct values values = {
        .workspace = workspace, .entry = entry, .as_json = escape == TEMPLATE_RAW};
    struct span place = {"", 0};
    int err = template_expand(template, escape, lookup_value, &values, out, &place);

    values_done(&values);
    if (err == -ENOENT) {
        snprintf(text->problem, sizeof(text->problem), "{%.*s} has no value in this entry",
                 (int)place.len, place.ptr);
        return -EINVAL;
    }
    if (err == -ENOBUFS) {
        snprintf(text->problem, sizeof(text->problem), "the filled template is too long");
        return -EINVAL;
    }
    return err;
}

static bool is_absolute(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* Scheme and host of an absolute template; places in braces may hold anything. */
static size_t place_length(const char *template)
{
    const char *at = strstr(template, "://");
    int depth = 0;

    for (at = at ? at + 3 : template; *at != '\0' && (depth > 0 || !strchr("/?#", *at)); at++) {
        depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
    }
    return (size_t)(at - template);
}

const char *http_request_place(const char *template, const struct target *target,
                               struct span workspace, const struct entry *entry,
                               struct http_request_text *text)
{
    if (!is_absolute(template)) {
        return target->url;
    }
    char *place = strndup(template, place_length(template));

    buf_reset(&text->place);
    const int err =
        place ? fill(place, TEMPLATE_PERCENT, workspace, entry, &text->place, text) : -ENOMEM;

    free(place);
    return err == 0 ? text->place.bytes : NULL;
}

/* Base and template meet with exactly one slash between them. */
static int build_url(const char *template, const struct target *target, struct span workspace,
                     const struct entry *entry, struct http_request_text *text)
{
    if (!is_absolute(template)) {
        if (!target->url || target->url[0] == '\0') {
            snprintf(text->problem, sizeof(text->problem),
                     "no target is configured (setting target.url)");
            return -EINVAL;
        }
        size_t len = strlen(target->url);

        while (len > 0 && target->url[len - 1] == '/') {
            len--;
        }
        if (buf_append(&text->url, target->url, len) < 0 ||
            (template[0] != '/' && template[0] != '?' && buf_append_str(&text->url, "/") < 0)) {
            return -ENOMEM;
        }
    }
    return fill(template, TEMPLATE_PERCENT, workspace, entry, &text->url, text);
}

/* Without a template: the payload as the client sent it, or {"text":…,"model":…}. */
static int build_body(const struct kind *kind, struct span workspace, const struct entry *entry,
                      struct http_request_text *text)
{
    const struct entry_body *body = &entry->body;

    if (kind->body) {
        return fill(kind->body, TEMPLATE_RAW, workspace, entry, &text->body, text);
    }
    if (!body->has_text) {
        return buf_append(&text->body, body->payload.ptr, body->payload.len);
    }
    json_t *string = json_stringn(body->text.ptr, body->text.len);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    int err = quoted ? buf_appendf(&text->body, "{\"text\":%s", quoted) : -ENOMEM;

    json_decref(string);
    free(quoted);
    if (err == 0 && body->model.len > 0) {
        err = buf_append_str(&text->body, ",\"model\":");
        err = err == 0 ? buf_append(&text->body, body->model.ptr, body->model.len) : err;
    }
    return err == 0 ? buf_append_str(&text->body, "}") : err;
}

static bool is_header_text(struct span value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < 0x20 || value.ptr[i] > 0x7e) {
            return false;
        }
    }
    /* libcurl drops blanks at the ends; a value that has them would arrive changed. */
    return value.len == 0 || (value.ptr[0] != ' ' && value.ptr[value.len - 1] != ' ');
}

static int add_header(struct http_request_text *text, const char *name, struct span value)
{
    char encoded[CMID_ENC_MAX + 1];

    if (value.len == 0) {
        return 0;
    }
    if (!is_header_text(value)) {
        const int64_t len = percent_encode(value.ptr, value.len, encoded, sizeof(encoded));

        if (len < 0) {
            return 0; /* longer than anything acceptance lets in: an entry written by somebody else
                       */
        }
        value = (struct span){encoded, (size_t)len};
    }
    int err = buf_appendf(&text->headers, "%s: %.*s", name, (int)value.len, value.ptr);

    return err == 0 ? buf_append(&text->headers, "", 1) : err;
}

static void list_headers(const struct http_request_text *text, struct transfer_request *ret)
{
    const char *at = text->headers.bytes;
    const char *end = at + text->headers.len;

    while (at && at < end && ret->header_count < TRANSFER_HEADERS_MAX) {
        ret->headers[ret->header_count++] = at;
        at += strlen(at) + 1;
    }
}

/* Of this very attempt: the time is that of now, the ID the entry's on every repeat. */
static int add_signature(const struct target *target, struct span id,
                         const struct transfer_request *request, struct http_request_text *text)
{
    const bool has_body =
        strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0;
    const struct span body = has_body ? request->body : (struct span){0};
    const int64_t now_s = clock_wall_ms() / 1000;
    char number[24];
    struct buf signature;

    buf_init(&signature, SIGNATURE_MAX);
    snprintf(number, sizeof(number), "%" PRId64, now_s);
    int err =
        webhook_signature_write(target->secrets, target->secret_count, id, now_s, body, &signature);
    err = err == 0 ? add_header(text, "webhook-id", id) : err;
    err = err == 0 ? add_header(text, "webhook-timestamp", span_of(number)) : err;
    err = err == 0
              ? add_header(text, "webhook-signature", (struct span){signature.bytes, signature.len})
              : err;
    buf_done(&signature);
    return err;
}

int http_request_add_headers(const struct entry *entry, uint32_t attempt, const char *content_type,
                             const struct target *target, struct http_request_text *text,
                             struct transfer_request *ret)
{
    char number[16];
    int err;

    snprintf(number, sizeof(number), "%" PRIu32, attempt);
    err = add_header(text, "Idempotency-Key", entry->id);
    err = err == 0 ? add_header(text, "Outbox-Client-Message-Id", entry->body.client_message_id)
                   : err;
    err = err == 0 ? add_header(text, "Outbox-Attempt", span_of(number)) : err;
    err = err == 0 ? add_header(text, "traceparent", entry->body.traceparent) : err;
    err = err == 0 ? add_header(text, "If-Match", entry->if_match) : err;
    err = err == 0 ? add_header(text, "Content-Type", span_of(content_type)) : err;
    if (err == 0 && target && target->secret_count > 0) {
        err = add_signature(target, entry->id, ret, text);
    }
    if (err == 0) {
        list_headers(text, ret);
    }
    return err;
}

/* The target's credentials are for the target: a kind whose URL names another place gets none. */
static const struct target *owner_of(const char *template, const struct target *target)
{
    return is_absolute(template) ? NULL : target;
}

static void give_credentials(const struct target *target, struct transfer_request *ret)
{
    if (target) {
        ret->username = target->username;
        ret->password = target->password;
    }
}

int http_request_build(const struct kind *kind, const struct target *target, struct span workspace,
                       const struct entry *entry, uint32_t attempt, struct http_request_text *text,
                       struct transfer_request *ret)
{
    const char *template = kind->url ? kind->url : "/";
    const struct target *owner = owner_of(template, target);
    int err = build_url(template, target, workspace, entry, text);

    if (err == 0) {
        err = build_body(kind, workspace, entry, text);
    }
    if (err < 0) {
        return err;
    }
    *ret = (struct transfer_request){
        .method = kind->method,
        .url = text->url.bytes,
        .body = {text->body.bytes, text->body.len},
        .timeout_ms = kind->timeout_ms,
        .first_byte_timeout_ms = kind->first_byte_timeout_ms,
        .target = http_request_place(template, target, workspace, entry, text),
        .subject = entry->id,
    };
    give_credentials(owner, ret);
    return http_request_add_headers(entry, attempt, kind->content_type, owner, text, ret);
}

int http_request_build_lookup(const struct kind *kind, const struct target *target,
                              struct span workspace, const struct entry *entry, int64_t timeout_ms,
                              struct http_request_text *text, struct transfer_request *ret)
{
    const char *template = kind->verify.url;
    int err = build_url(template, target, workspace, entry, text);

    if (err < 0) {
        return err;
    }
    *ret = (struct transfer_request){
        .method = kind->verify.method ? kind->verify.method : "GET",
        .url = text->url.bytes,
        .timeout_ms = timeout_ms,
        .target = http_request_place(template, target, workspace, entry, text),
        .subject = entry->id,
        .is_lookup = true,
    };
    give_credentials(owner_of(template, target), ret);
    return 0;
}
