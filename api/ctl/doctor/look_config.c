/* Reads the configuration as outboxd does, and looks at the files that it names. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "api/ctl/doctor/look.h"
#include "common/base/store_password.h"

#define DEFAULT_CONFIG "/etc/outboxd/outboxd.yaml"

static void add_file(struct facts *facts, const char *what, const char *path, bool is_secret)
{
    struct stat st = {0};
    int err = 0;

    if (!path || !*path || facts->file_count == FILES_MAX) {
        return;
    }
    if (stat(path, &st) < 0 || access(path, R_OK) < 0) {
        err = -errno;
    }
    facts->files[facts->file_count++] = (struct file_fact){
        .what = what, .path = path, .is_secret = is_secret, .err = err, .mode = st.st_mode};
}

static bool has_secrets(const struct settings *settings)
{
    const bool has_target = settings->target_password && *settings->target_password &&
                            !(settings->target_password_file && *settings->target_password_file);
    const bool has_store = settings->store_url &&
                           store_password_find(settings->store_url).has_password &&
                           !(settings->store_password_file && *settings->store_password_file);

    return has_target || has_store;
}

void look_at_config(const char *path, const char *token_file, struct facts *facts)
{
    facts->is_root = geteuid() == 0;
    facts->config_path = path ? path : access(DEFAULT_CONFIG, F_OK) == 0 ? DEFAULT_CONFIG : NULL;
    settings_report_init(&facts->report);
    if (settings_load(facts->config_path, &facts->settings, &facts->report) < 0) {
        facts->settings = NULL;
        if (facts->report.errors.len == 0) {
            (void)buf_appendf(&facts->report.errors, "%s cannot be read\n",
                              facts->config_path ? facts->config_path
                                                 : "the default configuration");
        }
    }
    const struct settings *settings = facts->settings;

    add_file(facts, "configuration", facts->config_path, settings && has_secrets(settings));
    add_file(facts, "OUTBOXCTL_TOKEN_FILE", token_file, true);
    if (settings) {
        add_file(facts, "store.password_file", settings->store_password_file, true);
        add_file(facts, "target.password_file", settings->target_password_file, true);
        add_file(facts, "token_file", settings->token_file, true);
        add_file(facts, "tls.key", settings->tls_key, true);
    }
}

void look_at_state_dir(struct facts *facts)
{
    const char *path = facts->settings ? facts->settings->state_dir : NULL;
    struct statvfs fs;
    struct stat st;

    if (!path) {
        return;
    }
    if (stat(path, &st) < 0 || statvfs(path, &fs) < 0) {
        facts->state_err = -errno;
        return;
    }
    facts->state_mode = st.st_mode;
    facts->state_uid = st.st_uid;
    facts->is_state_writable = access(path, R_OK | W_OK | X_OK) == 0;
    facts->space_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    facts->inodes = fs.f_favail;
    facts->has_inodes = fs.f_files > 0;
}
