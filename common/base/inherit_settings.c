/* Reads the inherited configuration with the parser that read the file. */
#include "common/base/inherit_settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/inherit.h"
#include "common/base/settings.h"

#define CONFIG_MAX (4u << 20)

int inherit_read_settings(const char *program, struct settings **ret)
{
    struct settings_report report;
    struct buf text;
    char chunk[4096];
    ssize_t len;
    off_t at = 0;
    int err = 0;

    buf_init(&text, CONFIG_MAX);
    settings_report_init(&report);
    /* The descriptor is shared with every other child: read at positions, never move it. */
    while (err == 0 && (len = pread(INHERIT_CONFIG, chunk, sizeof(chunk), at)) > 0) {
        err = buf_append(&text, chunk, (size_t)len);
        at += len;
    }
    if (err == 0) {
        err = settings_parse("inherited configuration", text.bytes ? text.bytes : "", text.len, ret,
                             &report);
    }
    if (err < 0) {
        fprintf(stderr, "%s: cannot read the inherited configuration: %s\n%s", program,
                strerror(-err), report.errors.bytes ? report.errors.bytes : "");
    }
    settings_report_done(&report);
    buf_done(&text);
    close(INHERIT_CONFIG);
    return err;
}
