/* The files of `token_file` and `tls.…`: read and checked with the configuration, so that what is
 * wrong with them is told as a mistake of the configuration. */
#ifndef SUPERVISOR_CREDENTIAL_FILES_H
#define SUPERVISOR_CREDENTIAL_FILES_H

#include <stdbool.h>

struct credentials;
struct settings;
struct settings_report;

/* Mistakes and warnings go to the report. `is_start`: the daemon starts with these; then a
 * certificate that has run out is a warning only, since messages that were accepted are delivered
 * all the same; for a reload or a check it is a mistake. 0 and *ret (credentials_done), -EINVAL, or
 * -ENOMEM. */
int credential_files_read(const char *config, const struct settings *settings, bool is_start,
                          struct credentials *ret, struct settings_report *report);

#endif
