/* Passwords from files. A password that stands in the configuration itself wins over the file it
 * names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/named_file.h"
#include "common/base/settings_private.h"
#include "common/base/store_password.h"
#include "common/base/webhook_secret.h"
#include "common/core/utf8.h"

#define PASSWORD_MAX 1024

struct secret {
    char text[PASSWORD_MAX + 1];
};

static void wipe(struct secret *secret)
{
    explicit_bzero(secret, sizeof(*secret));
}

static int take(struct settings_source *source, size_t line, const char *path, const char *name,
                const char *text, size_t len, struct secret *ret)
{
    if (len > 0 && text[len - 1] == '\n') { /* an editor's last line end is no part of it */
        len--;
        len -= len > 0 && text[len - 1] == '\r';
    }
    if (len == 0 || memchr(text, '\0', len) || !utf8_is_valid(text, len)) {
        char file[256];

        named_file_path(name, file, sizeof(file));
        settings_complain(source, line, path, "%s %s", file,
                          len == 0 ? "is empty" : "holds bytes that are no text");
        return -EINVAL;
    }
    memcpy(ret->text, text, len);
    ret->text[len] = '\0';
    return 0;
}

static int read_file(struct settings_source *source, size_t line, const char *path,
                     const char *name, struct secret *ret)
{
    struct named_file_mistake mistake;
    char *text = NULL;
    size_t len = 0;

    if (source->report->is_look_only && named_file_is_credential(name)) {
        settings_warn(source, line, path,
                      "the credential %s of systemd is not looked at: only the service gets it",
                      settings_show(name, strlen(name)).text);
        return -ENOENT;
    }
    int err = named_file_read(name, "a password", PASSWORD_MAX, &text, &len, &mistake);

    if (err == -EINVAL) {
        settings_complain(source, line, path, "%s", mistake.text);
    } else if (err < 0) {
        source->err = err;
    } else {
        err = take(source, line, path, name, text, len, ret);
    }
    named_file_forget(text, len);
    return err;
}

static void read_target_password(struct settings_source *source, struct settings *settings,
                                 size_t line)
{
    struct secret secret;

    if (settings->target_password) {
        settings_warn(source, line, "target.password_file",
                      "not read: target.password is given too");
        return;
    }
    if (read_file(source, line, "target.password_file", settings->target_password_file, &secret) ==
        0) {
        settings->target_password = strdup(secret.text);
        source->err = settings->target_password ? source->err : -ENOMEM;
    }
    wipe(&secret);
}

/* Keeps what `text` holds, a secret on each line, in target_secrets. Nothing of them is told. */
static void take_secrets(struct settings_source *source, struct settings *settings, size_t line,
                         char *text)
{
    const struct setting_row *row = &setting_rows[SETTING_target_secrets];
    const char *items[WEBHOOK_SECRETS_MAX];
    char reason[128];
    size_t count = 0, number = 0;
    char *rest = text;

    for (char *at = strsep(&rest, "\n"); at; at = strsep(&rest, "\n")) {
        struct webhook_key key;

        number++;
        at[strcspn(at, "\r")] = '\0';
        if (*at == '\0' || *at == '#') {
            continue;
        }
        const int err = webhook_secret_read(at, &key);

        webhook_key_wipe(&key);
        if (err < 0 || count == WEBHOOK_SECRETS_MAX) {
            settings_complain(source, line, "target.secrets_file", "its line %zu %s", number,
                              err < 0 ? "is no secret (" WEBHOOK_SECRET_FORM ")"
                                      : "is one secret too many");
            return;
        }
        items[count++] = at;
    }
    if (count == 0) {
        settings_complain(source, line, "target.secrets_file", "holds no secret");
        return;
    }
    if (settings_value_parse_items(row, items, count, &settings->target_secrets, reason,
                                   sizeof(reason)) < 0) {
        source->err = -ENOMEM;
    }
}

static void read_target_secrets(struct settings_source *source, struct settings *settings,
                                size_t line)
{
    struct secret secret;

    if (settings->target_secrets.count > 0) {
        settings_warn(source, line, "target.secrets_file", "not read: target.secrets is given too");
        return;
    }
    if (read_file(source, line, "target.secrets_file", settings->target_secrets_file, &secret) ==
        0) {
        take_secrets(source, settings, line, secret.text);
    }
    wipe(&secret);
}

static void read_store_password(struct settings_source *source, struct settings *settings,
                                size_t line)
{
    struct secret secret;

    if (!settings->store_url) {
        return; /* told by the rules: a password for nothing */
    }
    if (store_password_find(settings->store_url).has_password) {
        settings_warn(source, line, "store.password_file", "not read: store.url holds a password");
        return;
    }
    if (read_file(source, line, "store.password_file", settings->store_password_file, &secret) ==
        0) {
        char *url = store_password_set(settings->store_url, secret.text);

        if (url) {
            free(settings->store_url);
            settings->store_url = url;
        } else {
            source->err = -ENOMEM;
        }
    }
    wipe(&secret);
}

void settings_read_secrets(struct settings_source *source, struct settings *settings,
                           const struct settings_lines *lines)
{
    if (settings->target_password && !settings->target_password_file) {
        settings_warn(
            source, lines->settings[SETTING_target_password], "target.password",
            "stands in the configuration itself: target.password_file keeps it out of it");
    }
    if (settings->target_password_file) {
        read_target_password(source, settings, lines->settings[SETTING_target_password_file]);
    }
    if (settings->target_secrets.count > 0 && !settings->target_secrets_file) {
        settings_warn(
            source, lines->settings[SETTING_target_secrets], "target.secrets",
            "stand in the configuration itself: target.secrets_file keeps them out of it");
    }
    if (settings->target_secrets_file) {
        read_target_secrets(source, settings, lines->settings[SETTING_target_secrets_file]);
    }
    if (settings->store_password_file) {
        read_store_password(source, settings, lines->settings[SETTING_store_password_file]);
    }
}
