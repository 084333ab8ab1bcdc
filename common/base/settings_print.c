/* The configuration as YAML that reads back to the same struct. Texts are always quoted, numbers
 * have units. */
#include <errno.h>
#include <string.h>

#include "common/base/settings_private.h"
#include "common/base/store_password.h"
#include "common/core/utf8.h"

#define MASK "***"

/* Characters that YAML would fold, refuse or read as something else, even between quotes. */
static bool must_escape(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

int settings_print_quoted(const char *text, struct buf *out)
{
    size_t left = strlen(text);
    int err = buf_append_str(out, "\"");

    while (err == 0 && left > 0) {
        uint32_t code;
        size_t n = utf8_next(text, left, &code);

        if (n == 0) {
            return -EINVAL;
        }
        if (code == '"' || code == '\\') {
            err = buf_appendf(out, "\\%c", (int)code);
        } else if (must_escape(code)) {
            err = buf_appendf(out, "\\u%04x", (unsigned)code);
        } else {
            err = buf_append(out, text, n);
        }
        text += n;
        left -= n;
    }
    return err < 0 ? err : buf_append_str(out, "\"");
}

/* Writes the heading of a row's section if it is a new one. `*section` is what was written last. */
static int print_heading(const struct setting_row *row, const char **section, size_t *section_len,
                         const char *indent, struct buf *out)
{
    const char *dot = strchr(row->path, '.');
    size_t len = dot ? (size_t)(dot - row->path) : 0;

    if (len == *section_len && memcmp(row->path, *section, len) == 0) {
        return 0;
    }
    *section = row->path;
    *section_len = len;
    return len > 0 ? buf_appendf(out, "%s%.*s:\n", indent, (int)len, row->path) : 0;
}

static const char *last_part(const struct setting_row *row)
{
    const char *dot = strrchr(row->path, '.');

    return dot ? dot + 1 : row->path;
}

static int print_masked_url(const char *url, struct buf *out)
{
    struct store_password parts = store_password_find(url);
    struct buf masked;

    if (!parts.has_password) {
        return settings_print_quoted(url, out);
    }
    buf_init(&masked, strlen(url) + sizeof(MASK));
    (void)buf_append(&masked, url, parts.password); /* checked at the end of the chain */
    (void)buf_append_str(&masked, MASK);
    int err = buf_append_str(&masked, url + parts.password + parts.password_len);
    if (err == 0) {
        err = settings_print_quoted(masked.bytes, out);
    }
    buf_done(&masked);
    return err;
}

static bool is_given(const struct setting_row *row, const void *field)
{
    return row->type == TYPE_TEXTS ? ((const struct text_list *)field)->count > 0
                                   : *(char *const *)field != NULL;
}

static int print_value(const struct settings *settings, const struct setting_row *row,
                       bool with_secrets, struct buf *out)
{
    const void *field = setting_const_field(row, settings);

    if (!with_secrets && row == &setting_rows[SETTING_store_url] && settings->store_url) {
        return print_masked_url(settings->store_url, out);
    }
    if (!with_secrets && row->flags & FLAG_SECRET && is_given(row, field)) {
        return buf_append_str(out, "\"" MASK "\"");
    }
    return settings_value_print(row->type, field, out);
}

static int print_setting(const struct settings *settings, const struct setting_row *row,
                         bool with_secrets, struct buf *out)
{
    const char *indent = strchr(row->path, '.') ? "  " : "";

    if (!with_secrets && row == &setting_rows[SETTING_target_password] &&
        settings->target_password_file) {
        return buf_appendf(out, "%s# password: read from password_file\n", indent);
    }
    if (!with_secrets && row == &setting_rows[SETTING_target_secrets] &&
        settings->target_secrets_file) {
        return buf_appendf(out, "%s# secrets: read from secrets_file\n", indent);
    }
    int err = buf_appendf(out, "%s%s: ", indent, last_part(row));
    if (err == 0) {
        err = print_value(settings, row, with_secrets, out);
    }
    return err < 0 ? err : buf_append_str(out, "\n");
}

/* What is absent is left out: it reads back as absent. */
static bool is_printed(const struct kind *kind, const struct setting_row *row)
{
    const void *field = setting_const_field(row, kind);

    if (strncmp(row->path, "verify.", 7) == 0 && !kind->verify.url) {
        return false;
    }
    return row->type != TYPE_TEXT || *(char *const *)field;
}

static int print_kind(const struct kind *kind, struct buf *out)
{
    const char *section = "";
    size_t section_len = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < KIND_ROW_COUNT; i++) {
        const struct setting_row *row = &kind_rows[i];

        if (!is_printed(kind, row)) {
            continue;
        }
        err = print_heading(row, &section, &section_len, "    ", out);
        if (err == 0) {
            err = buf_appendf(out, "%s%s: ",
                              i == 0        ? "  - "
                              : section_len ? "      "
                                            : "    ",
                              last_part(row));
        }
        if (err == 0) {
            err = settings_value_print(row->type, setting_const_field(row, kind), out);
        }
        if (err == 0) {
            err = buf_append_str(out, "\n");
        }
    }
    return err;
}

int settings_print(const struct settings *settings, bool with_secrets, struct buf *out)
{
    const char *section = "";
    size_t section_len = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < SETTING_COUNT; i++) {
        err = print_heading(&setting_rows[i], &section, &section_len, "", out);
        if (err == 0) {
            err = print_setting(settings, &setting_rows[i], with_secrets, out);
        }
    }
    if (err == 0) {
        err = buf_append_str(out, "kinds:\n");
    }
    for (size_t i = 0; err == 0 && i < settings->kind_count; i++) {
        err = print_kind(&settings->kinds[i], out);
    }
    return err;
}
