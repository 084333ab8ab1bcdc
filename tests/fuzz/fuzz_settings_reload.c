/* A new configuration for a daemon that runs: two files, a NUL between them. What stays in force is
 * a configuration of its own, and what is left is named. */
#include "common/base/settings.h"
#include "tests/fuzz/fuzz.h"

static struct settings *parse(const char *bytes, size_t len)
{
    struct settings_report report;
    struct settings *settings = NULL;

    settings_report_init(&report);
    (void)settings_parse("fuzz", bytes, len, &settings, &report);
    settings_report_done(&report);
    return settings;
}

static void check_is_whole(const struct settings *settings)
{
    struct settings *again = NULL;
    struct buf text;

    buf_init(&text, 1U << 22);
    MUST_HOLD(settings_print(settings, true, &text) == 0);
    again = parse(text.bytes, text.len);
    MUST_HOLD(again);
    settings_destroy(&again);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *nul = len > 0 ? memchr(bytes, '\0', len) : NULL;

    if (!nul) {
        return 0;
    }
    const size_t first = (size_t)(nul - (const char *)bytes);
    struct settings *running = parse((const char *)bytes, first);
    struct settings *fresh = parse(nul + 1, len - first - 1);
    struct settings *configured = NULL;
    struct buf left;

    buf_init(&left, 1U << 16);
    if (running && fresh && settings_copy(running, &configured) == 0 &&
        settings_keep_running(fresh, configured, running, &left) == 0) {
        check_is_whole(fresh);
        struct buf again;

        /* Done twice it changes nothing more. */
        buf_init(&again, 1U << 16);
        MUST_HOLD(settings_keep_running(fresh, fresh, running, &again) == 0);
        MUST_HOLD(again.len == 0);
        buf_done(&again);
    }
    buf_done(&left);
    settings_destroy(&configured);
    settings_destroy(&running);
    settings_destroy(&fresh);
    return 0;
}
