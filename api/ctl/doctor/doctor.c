/* `doctor`: looks, judges, tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/doctor/facts.h"
#include "api/ctl/doctor/findings.h"
#include "api/ctl/doctor/listen_url.h"
#include "api/ctl/doctor/look.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/run.h"
#include "api/ctl/style.h"
#include "api/ctl/terminal.h"
#include "common/base/clock.h"

#define TEXT_MAX ((size_t)1 << 20)
#define URL_MAX  512

static rule_fn *const rules[CHECK_COUNT] = {
#define CHECK(id, rule, name) [CHECK_##id] = rule_##rule,
#include "api/ctl/doctor/checks.def"
};

/* The server that the command line names; else the one of this configuration. */
static struct options with_server(const struct options *options, const struct facts *facts,
                                  char url[URL_MAX])
{
    struct options changed = *options;

    if (!option_is_set(options, OPTION_SERVER) &&
        strcmp(options->server, OPTIONS_DEFAULT_SERVER) == 0 && facts->settings &&
        facts->settings->listen.count > 0) {
        const bool is_tls = facts->settings->tls_certificate && facts->settings->tls_certificate[0];

        listen_url(facts->settings->listen.items[0], is_tls, url, URL_MAX);
        changed.server = url;
    }
    return changed;
}

static int64_t wall_ahead_ms(void)
{
    return clock_wall_ms() - clock_mono_ms();
}

static void look(const struct options *options, struct facts *facts, char url[URL_MAX])
{
    const int64_t before_ms = wall_ahead_ms();

    look_at_config(option_text(options, OPTION_CONFIG), options->token_file, facts);
    look_at_state_dir(facts);
    look_at_system(facts);
    look_at_clock(facts);
    look_at_processes(facts);
    const struct options asked = with_server(options, facts, url);

    facts->server = asked.server;
    look_at_server(&asked, facts);
    look_at_store(facts);
    facts->clock_step_ms = wall_ahead_ms() - before_ms;
}

static int report(const struct options *options, const struct findings *findings)
{
    struct buf out;

    buf_init(&out, TEXT_MAX);
    if (option_is_set(options, OPTION_JSON)) {
        findings_print_json(findings, &out);
    } else {
        size_t rows, columns = 0;

        terminal_size(&rows, &columns);
        findings_print(findings, columns, style_is_wanted(options), &out);
    }
    const int result = output_write(&out);

    buf_done(&out);
    return result;
}

int command_doctor(const struct options *options)
{
    struct facts *facts = calloc(1, sizeof(*facts));
    struct findings findings;
    char url[URL_MAX];

    if (!facts) {
        fputs("outboxctl: out of memory\n", stderr);
        return EXIT_CODE_FAILED;
    }
    findings_init(&findings);
    look(options, facts, url);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        findings.check = (enum check_id)i;
        rules[i](facts, &findings);
    }
    int result = report(options, &findings);

    if (result == EXIT_CODE_OK && (findings_count(&findings, FINDING_FAILURE) > 0 ||
                                   (option_is_set(options, OPTION_STRICT) &&
                                    findings_count(&findings, FINDING_WARNING) > 0))) {
        result = EXIT_CODE_FAILED;
    }
    findings_done(&findings);
    settings_report_done(&facts->report);
    settings_destroy(&facts->settings);
    free(facts);
    return result;
}
