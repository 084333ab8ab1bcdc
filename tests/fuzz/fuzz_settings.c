/* A configuration file: never a crash. What is refused is explained; what is taken prints to what
 * reads back, and that prints the same. */
#include <errno.h>

#include "common/base/settings.h"
#include "tests/fuzz/fuzz.h"

static void check_print(const struct settings *settings)
{
    struct settings_report report;
    struct settings *again = NULL;
    struct buf first, second;

    settings_report_init(&report);
    buf_init(&first, 1U << 22);
    buf_init(&second, 1U << 22);
    MUST_HOLD(settings_print(settings, true, &first) == 0);
    const int err = settings_parse("printed", first.bytes, first.len, &again, &report);

    if (err < 0 && report.errors.len > 0) {
        fputs(report.errors.bytes, stderr);
    }
    MUST_HOLD(err == 0);
    MUST_HOLD(settings_print(again, true, &second) == 0);
    MUST_HOLD(first.len == second.len && memcmp(first.bytes, second.bytes, first.len) == 0);
    settings_destroy(&again);
    settings_report_done(&report);
    buf_done(&first);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct settings_report report;
    struct settings *settings = NULL;

    settings_report_init(&report);
    if (settings_parse("fuzz", (const char *)bytes, len, &settings, &report) == 0) {
        MUST_HOLD(report.error_count == 0);
        check_print(settings);
    } else {
        MUST_HOLD(!settings && report.error_count > 0);
    }
    settings_destroy(&settings);
    settings_report_done(&report);
    return 0;
}
