/* Log lines: one line each, parseable whatever is put in, never longer than a pipe takes at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/core/utf8.h"

static char path[40], moved[48];
static char text[65536];

static int setup(void **state)
{
    (void)state;
    memcpy(path, "/tmp/outboxd-test.XXXXXX", 25);
    int fd = mkstemp(path);
    (void)snprintf(moved, sizeof(moved), "%s.1", path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    log_done();
    (void)unlink(moved);
    return unlink(path);
}

static const char *read_file(const char *name)
{
    int fd = open(name, O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);

    close(fd);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static const char *one_line(void)
{
    const char *line = read_file(path);
    size_t len = strlen(line);

    assert_true(len > 0 && len <= 4096);
    assert_ptr_equal(strchr(line, '\n'), line + len - 1); /* one, at the end */
    assert_true(utf8_is_valid(line, len));
    assert_int_equal(truncate(path, 0), 0);
    return line;
}

static void logfmt_quotes_what_needs_it(void **state)
{
    (void)state;
    assert_int_equal(log_init("worker", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, path), 0);
    log_info("store is away", "store", "unix:/a/b", "why", "say \"no\"\\", "n", LOG_I64(-5),
             "empty", "", "eq", "a=b", "bad key!", "x");
    const char *line = one_line();
    assert_memory_equal(line, "ts=20", 5);
    assert_non_null(strstr(line, " level=info role=worker pid="));
    assert_non_null(strstr(line,
                           " msg=\"store is away\" store=unix:/a/b why=\"say \\\"no\\\"\\\\\" "
                           "n=-5 empty=\"\" eq=\"a=b\" bad_key_=x\n"));
}

static void json_escapes_everything(void **state)
{
    (void)state;
    assert_int_equal(log_init("api", LOG_LEVEL_INFO, LOG_FORMAT_JSON, path), 0);
    log_warn("a\nb", "q", "\"\\\t\r\x01\x7f", "bad", "x\xff\xc0y", "good", "h\xc3\xa9", "null",
             (const char *)NULL);
    const char *line = one_line();
    assert_memory_equal(line, "{\"ts\":\"20", 9);
    assert_non_null(strstr(line, ",\"level\":\"warn\",\"role\":\"api\",\"pid\":"));
    assert_non_null(strstr(line, ",\"msg\":\"a\\nb\",\"q\":\"\\\"\\\\\\t\\r\\u0001\\u007f\","
                                 "\"bad\":\"x\xef\xbf\xbd\xef\xbf\xbdy\",\"good\":\"h\xc3\xa9\","
                                 "\"null\":\"\"}\n"));
}

/* A string that ends in its closing quote, and nothing open at the end of the object. */
static void check_json(const char *line)
{
    bool in_string = false;
    const char *p = line;

    for (; *p && *p != '\n'; p++) {
        if (in_string && *p == '\\') {
            p++;
        } else if (*p == '"') {
            in_string = !in_string;
        } else if (!in_string) {
            assert_non_null(strchr("{}:,0123456789", *p));
        }
    }
    assert_false(in_string);
    assert_int_equal(p[-1], '}');
}

static void long_lines_are_cut_and_stay_whole(void **state)
{
    static char value[6000];

    (void)state;
    for (int format = 0; format < 2; format++) {
        assert_int_equal(log_init("api", LOG_LEVEL_INFO, (enum log_format)format, path), 0);
        for (size_t len = 3700; len < 4200; len++) { /* every place at which the cut can fall */
            memset(value, 'a', len);
            value[len] = '\0';
            value[len / 2] = ' ';
            for (size_t i = len > 40 ? len - 40 : 0; i + 1 < len; i += 2) {
                memcpy(value + i, "\xc3\xa9", 2);
            }
            log_info("m", "k", value, "next", "\"", "last", "x");
            const char *line = one_line();
            if (format == 1) {
                check_json(line);
            }
        }
    }
}

static void levels_below_the_limit_are_silent(void **state)
{
    (void)state;
    assert_int_equal(log_init("api", LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, path), 0);
    log_info("no");
    log_debug("no");
    assert_string_equal(read_file(path), "");
    log_error("yes");
    assert_non_null(strstr(one_line(), "level=error"));
    assert_false(log_wants(LOG_LEVEL_INFO));
    assert_true(log_wants(LOG_LEVEL_WARN));
}

static void a_file_is_opened_anew_after_it_was_moved(void **state)
{
    (void)state;
    assert_int_equal(log_init("api", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, path), 0);
    assert_int_equal(rename(path, moved), 0);
    log_info("old");
    assert_int_equal(log_reopen(), 0);
    log_info("new");
    assert_non_null(strstr(read_file(moved), "msg=old"));
    assert_null(strstr(text, "msg=new"));
    assert_non_null(strstr(read_file(path), "msg=new"));
    assert_int_equal(truncate(path, 0), 0);
}

static void a_file_that_cannot_be_opened_leaves_the_old_one(void **state)
{
    (void)state;
    assert_int_equal(log_init("api", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, path), 0);
    assert_int_equal(log_init("x", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "/nonexistent/x"), -ENOENT);
    log_info("still here");
    assert_non_null(strstr(one_line(), "role=api"));
}

static void priorities_are_written_only_for_the_journal(void **state)
{
    char stream[64];
    struct stat st;
    int saved = dup(STDERR_FILENO);
    int fd = open(path, O_WRONLY | O_APPEND);

    (void)state;
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(fstat(fd, &st), 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
    assert_int_equal(log_init("api", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, NULL), 0);
    log_warn("w");
    assert_memory_equal(one_line(), "<4>ts=", 6);
    assert_int_equal(setenv("JOURNAL_STREAM", "1:1", 1), 0); /* another process's */
    assert_int_equal(log_init("api", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, NULL), 0);
    log_warn("w");
    assert_memory_equal(one_line(), "ts=", 3);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
    close(saved);
    close(fd);
}

static void errno_survives_a_log_line(void **state)
{
    (void)state;
    assert_int_equal(log_init("api", LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "/dev/full"), 0);
    errno = EXDEV;
    log_info("nobody hears this");
    assert_int_equal(errno, EXDEV);
}

static void times_are_rfc_3339(void **state)
{
    char out[32];

    (void)state;
    clock_format_rfc3339(1764547200123, out);
    assert_string_equal(out, "2025-12-01T00:00:00.123Z");
    clock_format_rfc3339(0, out);
    assert_string_equal(out, "1970-01-01T00:00:00.000Z");
    clock_format_rfc3339(-1, out);
    assert_string_equal(out, "1969-12-31T23:59:59.999Z");
    clock_format_rfc3339(253402300799999, out);
    assert_string_equal(out, "9999-12-31T23:59:59.999Z");
    clock_format_rfc3339(INT64_MAX, out);
    assert_string_equal(out, "9999-12-31T23:59:59.999Z");
    clock_format_rfc3339(INT64_MIN + 1000, out);
    assert_string_equal(out, "9999-12-31T23:59:59.999Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logfmt_quotes_what_needs_it),
        cmocka_unit_test(json_escapes_everything),
        cmocka_unit_test(long_lines_are_cut_and_stay_whole),
        cmocka_unit_test(levels_below_the_limit_are_silent),
        cmocka_unit_test(a_file_is_opened_anew_after_it_was_moved),
        cmocka_unit_test(a_file_that_cannot_be_opened_leaves_the_old_one),
        cmocka_unit_test(priorities_are_written_only_for_the_journal),
        cmocka_unit_test(errno_survives_a_log_line),
        cmocka_unit_test(times_are_rfc_3339),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
