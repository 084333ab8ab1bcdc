/* Structured log lines on stderr: logfmt or JSON, `<n>` priorities when journald listens. One line
 * per call; equal lines beyond the first few within 10 s are summed up (log_repeats.h). Only
 * programs log; libraries return errors. No secrets; no message text at INFO and above (contract
 * §10). */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
};

enum log_format {
    LOG_FORMAT_LOGFMT,
    LOG_FORMAT_JSON,
};

/* Called once by main. `role` (static string) stands in every line; `file` NULL: stderr.
 * Returns 0 or -errno (the file can't be opened). */
int log_init(const char *role, enum log_level level, enum log_format format, const char *file);
/* Another level and format from now on (SIGHUP). */
void log_configure(enum log_level level, enum log_format format);
/* Opens the file anew (SIGUSR1); 0 or -errno, then the old one stays. */
int log_reopen(void);
/* The same, and the log tells what came of it: what every program does on SIGUSR1. */
void log_reopen_on_signal(void);
void log_done(void);

/* A message and pairs of (key, value), ended by NULL; values are strings, escaped here.
 *   log_write(LOG_LEVEL_WARN, "store is away", "store", url, "error", strerror(-err), NULL);
 * Numbers through LOG_I64(x): its text lives until the end of the statement. */
void log_write(enum log_level level, const char *message, ...) __attribute__((sentinel));
/* Whether a line of this level would be written: for callers that would format for nothing. */
int log_wants(enum log_level level);

struct log_i64 {
    char text[24];
};
struct log_i64 log_format_i64(int64_t value);
#define LOG_I64(x) (log_format_i64((int64_t)(x)).text)

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__, (const char *)NULL)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__, (const char *)NULL)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__, (const char *)NULL)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_wants(LOG_LEVEL_DEBUG)) {                                                          \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__, (const char *)NULL);                           \
        }                                                                                          \
    } while (0)

#endif
