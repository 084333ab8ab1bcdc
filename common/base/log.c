/* One log line per call, built in memory and written with one write(2), so that lines of several
 * processes never mix. Called by the loop thread of a program only. Never fails: a line that can't
 * be written is lost. */
#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log_repeats.h"
#include "common/core/keys.h"
#include "common/core/utf8.h"

/* Longest line, its newline included: a pipe takes so many bytes at once or not at all (PIPE_BUF).
 */
#define LINE_MAX_BYTES 4096
/* Kept free for what must follow a value that was cut: "…", quote, brace, newline. */
#define TAIL_BYTES     8

static struct {
    const char *role;
    enum log_level level;
    enum log_format format;
    int fd;
    bool has_priorities; /* journald reads our stderr */
    char *file;          /* owned; NULL: stderr */
    struct log_repeats repeats;
} logger = {.role = "outboxd", .level = LOG_LEVEL_INFO, .fd = STDERR_FILENO};

static const struct {
    const char *name;
    char priority; /* of syslog(3) */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", '3'},
    [LOG_LEVEL_WARN] = {"warn", '4'},
    [LOG_LEVEL_INFO] = {"info", '6'},
    [LOG_LEVEL_DEBUG] = {"debug", '7'},
};

struct line {
    char bytes[LINE_MAX_BYTES];
    size_t len;
    size_t head; /* what stands before the message: the time and who we are */
    bool is_cut;
};

/* All or nothing, and never into the tail. */
static bool add(struct line *line, const char *bytes, size_t len)
{
    size_t limit =
        sizeof(line->bytes) - TAIL_BYTES; /* a closing quote may stand behind it already */

    if (line->is_cut || line->len > limit || len > limit - line->len) {
        line->is_cut = true;
        return false;
    }
    memcpy(line->bytes + line->len, bytes, len);
    line->len += len;
    return true;
}

static void add_str(struct line *line, const char *str)
{
    (void)add(line, str, strlen(str)); /* a cut is remembered in the line */
}

/* What ends a line, even a cut one: there is always room for it. */
static void add_tail(struct line *line, const char *str)
{
    size_t len = strlen(str);

    memcpy(line->bytes + line->len, str, len);
    line->len += len;
}

/* One character of a quoted value. Both formats use JSON's escapes: no newline, no control
 * character, no invalid UTF-8 ever reaches the terminal or the reader. */
static bool add_escaped(struct line *line, const char *bytes, size_t len, uint32_t code)
{
    char text[8];

    switch (code) {
    case '"':
        return add(line, "\\\"", 2);
    case '\\':
        return add(line, "\\\\", 2);
    case '\n':
        return add(line, "\\n", 2);
    case '\r':
        return add(line, "\\r", 2);
    case '\t':
        return add(line, "\\t", 2);
    default:
        break;
    }
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
        (void)snprintf(text, sizeof(text), "\\u%04x", (unsigned)code);
        return add(line, text, 6);
    }
    return add(line, bytes, len);
}

static void add_quoted(struct line *line, const char *value)
{
    size_t left = strlen(value);

    if (!add(line, "\"", 1)) {
        return;
    }
    while (left > 0) {
        uint32_t code;
        size_t n = utf8_next(value, left, &code);
        bool fits = n > 0 ? add_escaped(line, value, n, code) : add(line, "\xef\xbf\xbd", 3);

        if (!fits) {
            add_tail(line, "\xe2\x80\xa6"); /* … */
            break;
        }
        n = n > 0 ? n : 1;
        value += n;
        left -= n;
    }
    add_tail(line, "\"");
}

static bool is_bare(const char *value)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-_.:/@+,%~*()[]{}<>#!?&;^$|";
    size_t len = strlen(value);

    return len > 0 && len < 256 && strspn(value, allowed) == len;
}

static void add_key(struct line *line, const char *key)
{
    char clean[64];
    size_t n = 0;

    for (; *key && n < sizeof(clean) - 1; key++) {
        bool is_good = (*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z') ||
                       (*key >= '0' && *key <= '9') || *key == '_' || *key == '.' || *key == '-';

        clean[n++] = *key;
        if (!is_good) {
            clean[n - 1] = '_';
        }
    }
    clean[n] = '\0';
    add_str(line, clean);
}

static void add_pair(struct line *line, const char *key, const char *value)
{
    size_t before = line->len;
    const char *shown = value ? value : "";

    if (line->is_cut) {
        return;
    }
    if (logger.format == LOG_FORMAT_JSON) {
        add_str(line, ",\"");
        add_key(line, key);
        add_str(line, "\":");
    } else {
        add_str(line, " ");
        add_key(line, key);
        add_str(line, "=");
    }
    if (line->len >= sizeof(line->bytes) - 2 * TAIL_BYTES) {
        line->is_cut = true; /* no room for a quote and what closes it */
    }
    if (!line->is_cut) {
        if (logger.format == LOG_FORMAT_JSON || !is_bare(shown)) {
            add_quoted(line, shown); /* may be cut inside its quotes: closed there */
            return;
        }
        add_str(line, shown);
    }
    if (line->is_cut) {
        line->len = before; /* half a pair is worse than none */
    }
}

static void add_head(struct line *line, enum log_level level)
{
    char time[32];
    struct log_i64 pid = log_format_i64(getpid());
    bool is_json = logger.format == LOG_FORMAT_JSON;

    clock_format_rfc3339(clock_wall_ms(), time);
    if (logger.has_priorities) {
        char priority[] = {'<', levels[level].priority, '>', '\0'};

        add_str(line, priority);
    }
    add_str(line, is_json ? "{\"ts\":\"" : "ts=");
    add_str(line, time);
    add_str(line, is_json ? "\"" : "");
    add_pair(line, "level", levels[level].name);
    add_pair(line, "role", logger.role);
    if (is_json) {
        add_str(line, ",\"pid\":");
        add_str(line, pid.text);
    } else {
        add_pair(line, "pid", pid.text);
    }
}

static void write_line(const struct line *line)
{
    size_t done = 0;

    while (done < line->len) {
        ssize_t n = write(logger.fd, line->bytes + done, line->len - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return; /* full disk, full pipe, closed terminal: there is nobody left to tell */
        }
        done += (size_t)n;
    }
}

static void end_line(struct line *line)
{
    add_tail(line, logger.format == LOG_FORMAT_JSON ? "}\n" : "\n");
    write_line(line);
}

/* What was held back, told once its time is over. */
static void tell_repeats(int64_t now_ms, bool all)
{
    struct log_repeat repeat;

    while (log_repeats_take(&logger.repeats, now_ms, all, &repeat)) {
        struct line line = {.len = 0};
        const struct log_i64 times = log_format_i64(repeat.seen - LOG_REPEATS_WRITTEN);

        add_head(&line, (enum log_level)repeat.level);
        add_pair(&line, "msg", "repeats of a line were left out");
        add_pair(&line, "line", repeat.text);
        add_pair(&line, "times", times.text);
        end_line(&line);
    }
}

int log_wants(enum log_level level)
{
    return level <= logger.level;
}

void log_write(enum log_level level, const char *message, ...)
{
    struct line line = {.len = 0};
    int saved_errno = errno; /* callers log in the middle of their error handling */
    const char *key;
    va_list args;

    if (!log_wants(level)) {
        return;
    }
    const int64_t now_ms = clock_mono_ms();

    tell_repeats(now_ms, false);
    add_head(&line, level);
    line.head = line.len;
    add_pair(&line, "msg", message);
    va_start(args, message);
    while ((key = va_arg(args, const char *)) != NULL) {
        add_pair(&line, key, va_arg(args, const char *));
    }
    va_end(args);
    /* At debug everything stands: there every step is to be seen. */
    if (log_wants(LOG_LEVEL_DEBUG) ||
        log_repeats_see(&logger.repeats, fnv1a64(line.bytes + line.head, line.len - line.head),
                        (int)level, message, now_ms)) {
        end_line(&line);
    }
    errno = saved_errno;
}

struct log_i64 log_format_i64(int64_t value)
{
    struct log_i64 ret;

    (void)snprintf(ret.text, sizeof(ret.text), "%" PRId64, value);
    return ret;
}

/* $JOURNAL_STREAM is "device:inode" of the stream that journald gave us; ours may have been
 * redirected since. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) < 0) {
        return false;
    }
    (void)snprintf(own, sizeof(own), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino);
    return strcmp(stream, own) == 0;
}

static int open_file(const char *file)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);

    return fd < 0 ? -errno : fd;
}

int log_init(const char *role, enum log_level level, enum log_format format, const char *file)
{
    int fd = STDERR_FILENO;
    char *copy = NULL;

    if (file) {
        copy = strdup(file);
        if (!copy) {
            return -ENOMEM;
        }
        fd = open_file(file);
        if (fd < 0) {
            free(copy);
            return fd;
        }
    }
    log_done();
    logger.role = role;
    logger.level = level;
    logger.format = format;
    logger.fd = fd;
    logger.file = copy;
    logger.has_priorities = !file && stderr_is_journal();
    return 0;
}

void log_configure(enum log_level level, enum log_format format)
{
    logger.level = level;
    logger.format = format;
}

int log_reopen(void)
{
    if (!logger.file) {
        return 0;
    }
    int fd = open_file(logger.file);
    if (fd < 0) {
        return fd;
    }
    close(logger.fd);
    logger.fd = fd;
    return 0;
}

void log_reopen_on_signal(void)
{
    const int err = log_reopen();

    if (err < 0) {
        log_error("cannot open the log file anew: the old one stays", "error", strerror(-err));
    } else {
        log_info("log file opened anew");
    }
}

void log_done(void)
{
    tell_repeats(clock_mono_ms(), true);
    if (logger.file) {
        close(logger.fd);
        free(logger.file);
    }
    logger.file = NULL;
    logger.fd = STDERR_FILENO;
    logger.has_priorities = false;
}
