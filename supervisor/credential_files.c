/* Reads the files, and has each looked at by who knows its contents. */
#include "supervisor/credential_files.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/access/credentials.h"
#include "common/access/tls_check.h"
#include "common/access/token_table.h"
#include "common/base/named_file.h"
#include "common/base/settings.h"

#define PEM_MAX (1U << 20)

struct reading {
    const char *config;
    struct settings_report *report;
    bool has_mistakes;
};

static void complain(struct reading *reading, const char *setting, const char *reason)
{
    reading->has_mistakes = true;
    (void)buf_appendf(&reading->report->errors, "%s: %s: %s\n", reading->config, setting, reason);
}

/* Whether others may write (`bits`: S_IWOTH) or read (S_IROTH) it. */
static bool is_open_to_others(const char *name, mode_t bits)
{
    char path[PATH_MAX];
    struct stat stat_;

    named_file_path(name, path, sizeof(path));
    return stat(path, &stat_) == 0 && S_ISREG(stat_.st_mode) && (stat_.st_mode & bits);
}

/* NULL text: not configured, or told. -ENOMEM. */
static int read_one(struct reading *reading, const char *setting, const char *name,
                    const char *what, size_t max, char **ret)
{
    struct named_file_mistake mistake;
    size_t len = 0;

    if (name && reading->report->is_look_only && named_file_is_credential(name)) {
        (void)buf_appendf(&reading->report->warnings,
                          "%s: %s: the credential '%s' of systemd is not looked at: only the "
                          "service gets it\n",
                          reading->config, setting, name);
        return 0;
    }
    const int err = name ? named_file_read(name, what, max, ret, &len, &mistake) : 0;

    if (err == -EINVAL) {
        complain(reading, setting, mistake.text);
        return 0;
    }
    if (*ret && strlen(*ret) != len) {
        complain(reading, setting, "its file holds bytes that are no text");
        named_file_forget(*ret, len);
        *ret = NULL;
    }
    return err;
}

static int check_tokens(struct reading *reading, const char *name, const char *text)
{
    struct token_table *table = NULL;
    struct settings_report *report = reading->report;
    char path[PATH_MAX];

    named_file_path(name, path, sizeof(path));
    if (sodium_init() < 0) {
        return -ENOMEM;
    }
    if (is_open_to_others(name, S_IWOTH)) {
        complain(reading, "token_file",
                 "everybody on this machine may write to it, and so let themselves in: chmod o-w");
    }
    const int err = token_table_parse(path, span_of(text), &table, &report->errors);
    if (err == -EINVAL) {
        reading->has_mistakes = true;
        return 0;
    }
    if (err == 0 && token_table_count(table) == 0) {
        (void)buf_appendf(&report->warnings,
                          "%s: holds no token: nobody may call the API (outboxctl token create)\n",
                          path);
    }
    token_table_destroy(&table);
    return err;
}

static struct span pem_of(const char *text)
{
    return text ? span_of(text) : (struct span){0};
}

static void check_tls(struct reading *reading, const struct settings *s,
                      const struct credentials *read, bool is_start)
{
    const struct tls_texts texts = {
        .certificate = {"tls.certificate", s->tls_certificate, pem_of(read->certificate)},
        .key = {"tls.key", s->tls_key, pem_of(read->key)},
        .client_ca = {"tls.client_ca", s->tls_client_ca, pem_of(read->client_ca)},
    };
    struct settings_report *report = reading->report;
    const size_t before = report->errors.len;

    tls_check(&texts, (int64_t)time(NULL), &report->errors,
              is_start ? &report->warnings : &report->errors, &report->warnings);
    reading->has_mistakes = reading->has_mistakes || report->errors.len > before;
    if (read->key && is_open_to_others(s->tls_key, S_IROTH)) {
        (void)buf_appendf(&report->warnings,
                          "tls.key: %s: everybody on this machine may read it: chmod o-r\n",
                          s->tls_key);
    }
}

int credential_files_read(const char *config, const struct settings *s, bool is_start,
                          struct credentials *ret, struct settings_report *report)
{
    struct reading reading = {.config = config ? config : "defaults", .report = report};
    struct credentials read = {0};
    int err = read_one(&reading, "token_file", s->token_file, "a file of tokens", TOKEN_FILE_MAX,
                       &read.tokens);

    err = err == 0 ? read_one(&reading, "tls.certificate", s->tls_certificate, "a certificate",
                              PEM_MAX, &read.certificate)
                   : err;
    err = err == 0 ? read_one(&reading, "tls.key", s->tls_key, "a key", PEM_MAX, &read.key) : err;
    err = err == 0 ? read_one(&reading, "tls.client_ca", s->tls_client_ca, "certificates", PEM_MAX,
                              &read.client_ca)
                   : err;
    if (err == 0 && read.tokens) {
        err = check_tokens(&reading, s->token_file, read.tokens);
    }
    if (err == 0) {
        check_tls(&reading, s, &read, is_start);
    }
    err = err == 0 && reading.has_mistakes ? -EINVAL : err;
    if (err < 0) {
        credentials_done(&read);
        return err;
    }
    *ret = read;
    return 0;
}
