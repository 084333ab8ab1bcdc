/* See config_file.h. */
#include "supervisor/config_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/unbuilt.h"

int config_file_load(const char *path, struct settings **ret, struct settings_report *report)
{
    struct settings *settings = NULL;

    if (!path && access(CONFIG_FILE_DEFAULT, F_OK) == 0) {
        path = CONFIG_FILE_DEFAULT;
    }
    int err = settings_load(path, &settings, report);
    if (err == 0 && unbuilt_settings(path, settings, &report->errors) > 0) {
        err = -EINVAL;
    }
    if (err < 0 && report->errors.len == 0) {
        (void)buf_appendf(&report->errors, "%s: %s\n", path ? path : "defaults", strerror(-err));
    }
    if (err < 0) {
        settings_destroy(&settings);
        return err;
    }
    *ret = settings;
    return 0;
}
