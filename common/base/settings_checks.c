/* What a single value must look like beyond its type: addresses, URLs, names, templates. One row
 * per setting or member of a kind; a check returns why the text is refused (static or in
 * `scratch`), or NULL. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/listen_address.h"
#include "common/base/settings_private.h"
#include "common/base/store_password.h"
#include "common/base/webhook_secret.h"
#include "common/core/ids.h"
#include "common/core/target_url.h"

#define KIND_NAME_MAX 64
#define MASK          "***"

struct scratch {
    char text[256];
};

typedef const char *check_fn(const char *text, struct scratch *scratch);

static bool has_control(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

static bool has_space(const char *text)
{
    return has_control(text) || strchr(text, ' ');
}

static const char *check_line(const char *text, struct scratch *scratch)
{
    (void)scratch;
    return has_control(text) ? "holds a control character or a line end" : NULL;
}

static const char *check_listen(const char *text, struct scratch *scratch)
{
    struct listen_address address;
    const char *reason = NULL;

    (void)scratch;
    return listen_address_parse(text, &address, &reason) < 0 ? reason : NULL;
}

/* As a browser writes it: anything else would never be equal to one. */
static const char *check_origin(const char *text, struct scratch *scratch)
{
    const char *host = strncmp(text, "https://", 8) == 0  ? text + 8
                       : strncmp(text, "http://", 7) == 0 ? text + 7
                                                          : "";

    (void)scratch;
    return *host == '\0' ||
                   strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") != strlen(host)
               ? "is no origin: http:// or https://, a host in lower case, :PORT if it is not the "
                 "usual one, and nothing behind it (https://app.example.org); * is not taken"
               : NULL;
}

static const char *check_node(const char *text, struct scratch *scratch)
{
    (void)scratch;
    return node_name_is_valid(text) ? NULL : "is not 1 to 64 of A-Z a-z 0-9 _ -";
}

static const char *check_store_url(const char *text, struct scratch *scratch)
{
    static const char *const schemes[] = {"unix://", "valkey://", "redis://", "valkeys://",
                                          "rediss://"};
    struct store_password password = store_password_find(text);

    (void)scratch;
    if (password.has_password && password.password_len == strlen(MASK) &&
        memcmp(text + password.password, MASK, strlen(MASK)) == 0) {
        return "its password is the mask that --print-config writes";
    }
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i]);

        if (strncmp(text, schemes[i], len) == 0) {
            return text[len] == '\0' || has_space(text) ? "names no host or path" : NULL;
        }
    }
    return "does not begin with unix://, valkey://, redis:// or valkeys://";
}

static const char *check_target_url(const char *text, struct scratch *scratch)
{
    static const char place[] = "{workspace}";

    (void)scratch;
    for (const char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
        if (strncmp(at, place, sizeof(place) - 1) != 0) {
            return "has a { that does not begin {workspace}, the one place that it may have";
        }
    }
    return target_url_refusal(text);
}

static const char *check_target_password(const char *text, struct scratch *scratch)
{
    (void)scratch;
    return strcmp(text, MASK) == 0 ? "is the mask that --print-config writes, not a password"
                                   : NULL;
}

static const char *check_secret(const char *text, struct scratch *scratch)
{
    struct webhook_key key;

    (void)scratch;
    if (strcmp(text, MASK) == 0) {
        return "is the mask that --print-config writes, not a secret";
    }
    const int err = webhook_secret_read(text, &key);

    webhook_key_wipe(&key);
    return err < 0 ? "holds what is no secret (" WEBHOOK_SECRET_FORM ")" : NULL;
}

static const char *check_username(const char *text, struct scratch *scratch)
{
    if (strchr(text, ':')) {
        return "holds a colon, which HTTP basic authentication can't carry";
    }
    return check_line(text, scratch);
}

/* ADDRESS or ADDRESS/BITS, IPv4 or IPv6. */
static const char *check_range(const char *text, struct scratch *scratch)
{
    char address[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    size_t len = strcspn(text, "/");
    const char *bits = text[len] ? text + len + 1 : NULL;
    unsigned long most = memchr(text, ':', len) ? 128 : 32;

    (void)scratch;
    if (len >= sizeof(address)) {
        return "is no address range (10.0.0.0/8, fd00::/8)";
    }
    memcpy(address, text, len);
    address[len] = '\0';
    if (inet_pton(most == 128 ? AF_INET6 : AF_INET, address, bytes) != 1) {
        return "is no address range (10.0.0.0/8, fd00::/8)";
    }
    if (bits && (strspn(bits, "0123456789") != strlen(bits) || strlen(bits) < 1 ||
                 strlen(bits) > 3 || strtoul(bits, NULL, 10) > most)) {
        return most == 128 ? "has no number of bits from 0 to 128 after its slash"
                           : "has no number of bits from 0 to 32 after its slash";
    }
    return NULL;
}

static const char *check_kind_name(const char *text, struct scratch *scratch)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";

    (void)scratch;
    return strlen(text) > KIND_NAME_MAX || strspn(text, allowed) != strlen(text)
               ? "is not 1 to 64 of letters, digits and . _ : -"
               : NULL;
}

static const char *check_method(const char *text, struct scratch *scratch)
{
    (void)scratch;
    return strlen(text) > 16 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != strlen(text)
               ? "is no HTTP method (upper case)"
               : NULL;
}

/* Whether `{name}` (len bytes of name) is one that the template may use. */
static bool is_known_place(const char *name, size_t len, bool is_lane)
{
    static const char *const places[] = {"clientMessageID", "workspace", "userID", "id",
                                         "session"}; /* the last two: not before acceptance */
    size_t count = is_lane ? 3 : 5;

    for (size_t i = 0; i < count; i++) {
        if (strlen(places[i]) == len && memcmp(places[i], name, len) == 0) {
            return true;
        }
    }
    return len > 8 && memcmp(name, "payload.", 8) == 0 && name[8] != '.' && name[len - 1] != '.';
}

static const char *check_places(const char *text, bool is_lane, struct scratch *scratch)
{
    const char *p = text;

    while ((p = strpbrk(p, "{}")) != NULL) {
        size_t len = strcspn(p + 1, "{}");

        if (*p == '}' || p[1 + len] != '}') {
            return "has a brace without its partner";
        }
        if (!is_known_place(p + 1, len, is_lane)) {
            (void)snprintf(scratch->text, sizeof(scratch->text),
                           "has a place %s that is none of {clientMessageID}, {workspace}, "
                           "{userID}, {payload.a.b}%s",
                           settings_show(p, len < 28 ? len + 2 : 30).text,
                           is_lane ? "" : ", {id}, {session}");
            return scratch->text;
        }
        p += len + 2;
    }
    return NULL;
}

static const char *check_url_template(const char *text, struct scratch *scratch)
{
    if (text[0] != '/' && strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        return "does not begin with / (relative to the target), http:// or https://";
    }
    if (text[0] != '/' && target_url_has_credentials(text)) {
        return "holds credentials: what --print-config and logs would show";
    }
    return has_space(text) ? "holds a space" : check_places(text, false, scratch);
}

static const char *check_lane(const char *text, struct scratch *scratch)
{
    return has_control(text) ? "holds a control character" : check_places(text, true, scratch);
}

static const struct {
    enum setting_id id;
    check_fn *check;
} setting_checks[] = {
    {SETTING_listen, check_listen},
    {SETTING_state_dir, check_line},
    {SETTING_node, check_node},
    {SETTING_pid_file, check_line},
    {SETTING_store_url, check_store_url},
    {SETTING_store_password_file, check_line},
    {SETTING_target_url, check_target_url},
    {SETTING_target_username, check_username},
    {SETTING_target_password_file, check_line},
    {SETTING_target_password, check_target_password},
    {SETTING_target_secrets_file, check_line},
    {SETTING_target_secrets, check_secret},
    {SETTING_targets_allow, check_range},
    {SETTING_targets_deny, check_range},
    {SETTING_targets_ca_file, check_line},
    {SETTING_token_file, check_line},
    {SETTING_tls_certificate, check_line},
    {SETTING_tls_key, check_line},
    {SETTING_tls_client_ca, check_line},
    {SETTING_http_cors_origins, check_origin},
    {SETTING_log_file, check_line},
};

static const struct {
    enum kind_row_id id;
    check_fn *check;
} kind_checks[] = {
    {KIND_ROW_name, check_kind_name},
    {KIND_ROW_method, check_method},
    {KIND_ROW_url, check_url_template},
    {KIND_ROW_content_type, check_line},
    {KIND_ROW_lane, check_lane},
    {KIND_ROW_verify_url, check_url_template},
    {KIND_ROW_verify_method, check_method},
};

/* Secrets are not shown, nor are URLs that may hold one. */
static void tell(struct settings_source *source, size_t line, const char *path, const char *text,
                 bool is_secret, const char *reason)
{
    if (is_secret) {
        settings_complain(source, line, path, "%s", reason);
    } else {
        settings_complain(source, line, path, "%s %s", settings_show(text, strlen(text)).text,
                          reason);
    }
}

static void check_setting(struct settings_source *source, const struct settings *settings,
                          enum setting_id id, size_t line, check_fn *check)
{
    const struct setting_row *row = &setting_rows[id];
    const void *field = setting_const_field(row, settings);
    const char *text = row->type == TYPE_TEXT ? *(char *const *)field : NULL;
    const struct text_list *list = row->type == TYPE_TEXTS ? field : NULL;
    bool is_secret =
        row->flags & FLAG_SECRET || id == SETTING_store_url || id == SETTING_target_url;
    struct scratch scratch;

    for (size_t i = 0; i < (list ? list->count : text ? 1 : 0); i++) {
        const char *one = list ? list->items[i] : text;
        const char *reason = check(one, &scratch);

        if (reason) {
            tell(source, line, row->path, one, is_secret, reason);
        }
    }
}

static void check_kind(struct settings_source *source, const struct kind *kind, size_t place,
                       const size_t *lines)
{
    for (size_t i = 0; i < sizeof(kind_checks) / sizeof(kind_checks[0]); i++) {
        const struct setting_row *row = &kind_rows[kind_checks[i].id];
        const char *text = *(char *const *)setting_const_field(row, kind);
        struct scratch scratch;
        const char *reason = text ? kind_checks[i].check(text, &scratch) : NULL;
        char path[64];

        if (reason) {
            (void)snprintf(path, sizeof(path), "kinds[%zu].%s", place, row->path);
            tell(source, lines[kind_checks[i].id], path, text, false, reason);
        }
    }
}

void settings_check_values(struct settings_source *source, const struct settings *settings,
                           const struct settings_lines *lines)
{
    for (size_t i = 0; i < sizeof(setting_checks) / sizeof(setting_checks[0]); i++) {
        enum setting_id id = setting_checks[i].id;

        check_setting(source, settings, id, lines->settings[id], setting_checks[i].check);
    }
    for (size_t i = 0; i < settings->kind_count; i++) {
        check_kind(source, &settings->kinds[i], lines->kind_place[i], lines->kind_rows[i]);
    }
}
