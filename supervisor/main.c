/* outboxd: reads the command line and the configuration, then runs the supervisor. The only place
 * of this program that decides its exit status: 0 drained or checked, 1 failed, 2 bad configuration
 * or arguments (contract §10). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_config.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "supervisor/config_file.h"
#include "supervisor/signals.h"
#include "supervisor/spawn.h"
#include "supervisor/supervisor.h"
#include "supervisor/upgrade_state.h"

#define PRINT_MAX (4U * 1024 * 1024)

enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_BAD_CONFIG = 2,
};

enum mode {
    MODE_RUN,
    MODE_CHECK_CONFIG,
    MODE_PRINT_CONFIG,
    MODE_CHECK,
    MODE_VERSION,
    MODE_HELP,
    MODE_COUNT, /* --config, in the table of options only */
};

static const struct option options[] = {
    {"config", required_argument, NULL, MODE_COUNT},
    {"check-config", no_argument, NULL, MODE_CHECK_CONFIG},
    {"print-config", no_argument, NULL, MODE_PRINT_CONFIG},
    {"check", no_argument, NULL, MODE_CHECK},
    {"version", no_argument, NULL, MODE_VERSION},
    {"help", no_argument, NULL, MODE_HELP},
    {NULL, 0, NULL, 0},
};

static void print_help(FILE *out)
{
    (void)fprintf(
        out,
        "usage: outboxd [--config FILE] [--check-config | --print-config | --check | --version | "
        "--help]\n\n"
        "  --config FILE    configuration; without it %s if it is there, else the defaults\n"
        "  --check-config   tell all mistakes of the configuration, and end\n"
        "  --print-config   print what is in force, secrets hidden, and end\n"
        "  --check          whether this installation can start with this configuration, and "
        "end\n\n"
        "signals:\n",
        CONFIG_FILE_DEFAULT);
    signals_print_help(out);
}

/* 0 or EXIT_BAD_CONFIG (told). */
static int read_arguments(int argc, char **argv, enum mode *ret_mode, const char **ret_config)
{
    int id;

    *ret_mode = MODE_RUN;
    *ret_config = NULL;
    while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (id < 0 || id > MODE_COUNT) {
            print_help(stderr); /* getopt has said what is wrong */
            return EXIT_BAD_CONFIG;
        }
        if (id == MODE_COUNT) {
            *ret_config = optarg;
        } else if (*ret_mode != MODE_RUN && *ret_mode != (enum mode)id) {
            (void)fprintf(stderr, "outboxd: only one of --check-config, --print-config, --check\n");
            return EXIT_BAD_CONFIG;
        } else {
            *ret_mode = (enum mode)id;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "outboxd: unexpected argument '%s'\n", argv[optind]);
        return EXIT_BAD_CONFIG;
    }
    return 0;
}

static void print_lines(const struct buf *lines)
{
    if (lines->len > 0) {
        (void)fwrite(lines->bytes, 1, lines->len,
                     stderr); /* nobody to tell if standard error is closed */
        if (lines->bytes[lines->len - 1] != '\n') {
            (void)fputc('\n', stderr);
        }
    }
}

/* False: mistakes, all told. */
static bool read_configuration(const char *config, enum mode mode, struct configuration *ret)
{
    struct settings_report report;

    settings_report_init(&report);
    report.is_look_only = mode == MODE_CHECK_CONFIG || mode == MODE_PRINT_CONFIG;
    const int err =
        config_file_load(config, mode == MODE_RUN ? CONFIG_START : CONFIG_CHECK, ret, &report);
    print_lines(&report.warnings);
    print_lines(&report.errors);
    settings_report_done(&report);
    return err == 0;
}

static int print_config(const struct settings *settings)
{
    struct buf text;

    buf_init(&text, PRINT_MAX);
    const int err = settings_print(settings, false, &text);
    const size_t written = err < 0 ? 0 : fwrite(text.bytes, 1, text.len, stdout);
    const bool is_whole = err == 0 && written == text.len && fflush(stdout) == 0;

    buf_done(&text);
    return is_whole ? EXIT_OK : EXIT_FAILED;
}

/* Takes over what the configuration holds. */
static int run(struct configuration *configuration, enum mode mode,
               const struct supervisor_options *how)
{
    struct upgrade_state *state = malloc(sizeof(*state));
    int status = EXIT_FAILED;

    if (!state) {
        (void)fprintf(stderr, "outboxd: out of memory\n");
        configuration_done(configuration);
        return EXIT_FAILED;
    }
    const int taken = upgrade_state_take(state);
    if (taken < 0) {
        configuration_done(configuration); /* told */
    } else if (mode == MODE_CHECK) {
        status = supervisor_check(configuration->settings, taken ? state : NULL) < 0 ? EXIT_FAILED
                                                                                     : EXIT_OK;
        configuration_done(configuration);
    } else {
        log_info(taken ? "outboxd goes on" : "outboxd starts", "version", OUTBOXD_VERSION,
                 "state_dir", configuration->settings->state_dir);
        status = supervisor_run(configuration, how, taken ? state : NULL);
    }
    if (taken > 0) {
        upgrade_state_done(state);
    }
    free(state);
    return status;
}

static int run_with_log(struct configuration *configuration, enum mode mode,
                        const struct supervisor_options *how)
{
    const struct settings *settings = configuration->settings;
    const int err =
        log_init("supervisor", settings->log_level, settings->log_format, settings->log_file);

    if (err < 0) {
        (void)fprintf(stderr, "outboxd: cannot open log.file %s: %s\n", settings->log_file,
                      strerror(-err));
        configuration_done(configuration);
        return EXIT_BAD_CONFIG;
    }
    const int status = run(configuration, mode, how);
    log_done();
    return status;
}

int main(int argc, char **argv)
{
    struct supervisor_options run_options = {.argv = argv};
    enum mode mode;

    spawn_protect(); /* whatever our parent left open goes to no child */
    const int wrong = read_arguments(argc, argv, &mode, &run_options.config);
    if (wrong != 0) {
        return wrong;
    }
    if (mode == MODE_VERSION) {
        (void)printf("outboxd %s\n", OUTBOXD_VERSION);
        return EXIT_OK;
    }
    if (mode == MODE_HELP) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (mode == MODE_RUN) {
        signals_block(true); /* until the loop takes them: none ends us in between */
    }
    struct configuration configuration;
    if (!read_configuration(run_options.config, mode, &configuration)) {
        return EXIT_BAD_CONFIG;
    }
    if (mode == MODE_RUN || mode == MODE_CHECK) {
        return run_with_log(&configuration, mode, &run_options);
    }
    int status = EXIT_OK;
    if (mode == MODE_CHECK_CONFIG) {
        (void)puts("configuration is good");
    } else {
        status = print_config(configuration.settings);
    }
    configuration_done(&configuration);
    return status;
}
