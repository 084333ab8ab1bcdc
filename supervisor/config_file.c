/* See config_file.h. */
#include "supervisor/config_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/credential_files.h"
#include "supervisor/privileges.h"

/* Files that children read whenever they need them: told here, where somebody looks. */
static size_t unreadable_files(const char *config, const struct settings *s, struct buf *lines)
{
    if (!s->targets_ca_file || access(s->targets_ca_file, R_OK) == 0) {
        return 0;
    }
    (void)buf_appendf(lines, "%s: targets.ca_file: cannot read %s: %s\n",
                      config ? config : "defaults", s->targets_ca_file, strerror(errno));
    return 1;
}

/* Only a start needs to be root: others may look at the configuration, too. */
static int check_user(const char *config, const struct settings *s, enum config_purpose purpose,
                      struct buf *lines)
{
    char why[PRIVILEGES_WHY_MAX];
    struct privileges found;
    const int err = privileges_find(s->user, s->group, purpose == CONFIG_CHECK, &found, why);

    if (err < 0) {
        (void)buf_appendf(lines, "%s: user: %s\n", config ? config : "defaults", why);
    }
    return err;
}

int config_file_load(const char *path, enum config_purpose purpose, struct configuration *ret,
                     struct settings_report *report)
{
    struct configuration read = {0};

    if (!path && access(CONFIG_FILE_DEFAULT, F_OK) == 0) {
        path = CONFIG_FILE_DEFAULT;
    }
    int err = settings_load(path, &read.settings, report);
    if (err == 0 && unreadable_files(path, read.settings, &report->errors) > 0) {
        err = -EINVAL;
    }
    if (err == 0) {
        err = check_user(path, read.settings, purpose, &report->errors);
    }
    if (err == 0) {
        err = credential_files_read(path, read.settings, purpose == CONFIG_START, &read.credentials,
                                    report);
    }
    if (err < 0 && report->errors.len == 0) {
        (void)buf_appendf(&report->errors, "%s: %s\n", path ? path : "defaults", strerror(-err));
    }
    if (err < 0) {
        configuration_done(&read);
        return err;
    }
    *ret = read;
    return 0;
}

void configuration_done(struct configuration *configuration)
{
    settings_destroy(&configuration->settings);
    credentials_done(&configuration->credentials);
}
