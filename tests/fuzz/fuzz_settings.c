/* A configuration file: never a crash; what is read prints to what reads back. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/settings.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct settings_report report;
    struct settings *settings = NULL;
    struct settings *again = NULL;
    struct buf text;

    settings_report_init(&report);
    buf_init(&text, 1U << 20);
    if (settings_parse("fuzz", (const char *)bytes, len, &settings, &report) == 0) {
        if (settings_print(settings, true, &text) < 0 ||
            settings_parse("printed", text.bytes, text.len, &again, &report) < 0) {
            abort();
        }
    }
    settings_destroy(&settings);
    settings_destroy(&again);
    settings_report_done(&report);
    buf_done(&text);
    return 0;
}
