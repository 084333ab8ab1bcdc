/* Reading configurations in tests: the good, and the bad with the line that is expected. The file's
 * name is "t". */
#ifndef TESTS_UNIT_SETTINGS_FIXTURE_H
#define TESTS_UNIT_SETTINGS_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/settings.h"

static inline struct settings *read_good_bytes(const char *bytes, size_t len)
{
    struct settings_report report;
    struct settings *settings = NULL;

    settings_report_init(&report);
    int err = settings_parse("t", bytes, len, &settings, &report);
    if (err < 0) {
        print_error("%s", report.errors.bytes ? report.errors.bytes : "(nothing told)");
    }
    assert_int_equal(err, 0);
    assert_int_equal(report.error_count, 0);
    settings_report_done(&report);
    return settings;
}

static inline struct settings *read_good(const char *text)
{
    return read_good_bytes(text, strlen(text));
}

/* Refused, and nothing returned. Returns the lines; the caller frees them. */
static inline char *read_bad_bytes(const char *bytes, size_t len)
{
    struct settings_report report;
    struct settings *settings = NULL;

    settings_report_init(&report);
    assert_int_equal(settings_parse("t", bytes, len, &settings, &report), -EINVAL);
    assert_null(settings);
    assert_true(report.error_count > 0);
    char *lines = buf_steal(&report.errors, NULL);
    if (!lines) {
        abort(); /* cmocka's assertions do not tell the compiler that they end the test */
    }
    settings_report_done(&report);
    return lines;
}

static inline void expect_mistake_bytes(const char *bytes, size_t len, const char *line)
{
    char *lines = read_bad_bytes(bytes, len);
    bool is_told = strstr(lines, line) != NULL;

    if (!is_told) {
        print_error("expected: %s\ngot: ", line);
        print_error("%s", lines);
    }
    assert_true(is_told);
    free(lines);
}

static inline void expect_mistake(const char *text, const char *line)
{
    expect_mistake_bytes(text, strlen(text), line);
}

static inline void expect_no_word(const char *text, const char *word)
{
    char *lines = read_bad_bytes(text, strlen(text));

    assert_null(strstr(lines, word));
    free(lines);
}

#endif
