/* outboxd-worker: started by the supervisor only. Takes what it inherits, reads its configuration,
 * runs. */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/inherit.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "worker/worker.h"

#define CONFIG_MAX (4u << 20)

static int read_settings(struct settings **ret)
{
    struct settings_report report;
    struct buf text;
    char chunk[4096];
    ssize_t len;
    off_t at = 0;
    int err = 0;

    buf_init(&text, CONFIG_MAX);
    settings_report_init(&report);
    /* The descriptor is shared with every other child: read at positions, never move it. */
    while (err == 0 && (len = pread(INHERIT_CONFIG, chunk, sizeof(chunk), at)) > 0) {
        err = buf_append(&text, chunk, (size_t)len);
        at += len;
    }
    if (err == 0) {
        err = settings_parse("inherited configuration", text.bytes ? text.bytes : "", text.len, ret,
                             &report);
    }
    if (err < 0) {
        fprintf(stderr, "outboxd-worker: cannot read the inherited configuration: %s\n%s",
                strerror(-err), report.errors.bytes ? report.errors.bytes : "");
    }
    settings_report_done(&report);
    buf_done(&text);
    return err;
}

int main(int argc, char **argv)
{
    struct inherit_args args;
    struct settings *settings = NULL;
    int status;

    if (inherit_parse_args(argc, argv, &args) < 0) {
        return 2;
    }
    inherit_protect();
    if (read_settings(&settings) < 0 || !settings) {
        return 2;
    }
    close(INHERIT_CONFIG);
    (void)signal(SIGPIPE, SIG_IGN);
    if (log_init("worker", settings->log_level, settings->log_format, settings->log_file) < 0) {
        fprintf(stderr, "outboxd-worker: cannot open the log file (setting log.file)\n");
    }
    const int lock = inherit_lock_slot(settings->state_dir, args.generation, args.slot);

    if (lock < 0) {
        log_error("cannot take the lock file of this slot", "slot", LOG_I64(args.slot), "error",
                  strerror(-lock));
        return 1;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    status = worker_run(&args, settings);
    curl_global_cleanup();
    settings_destroy(&settings);
    log_done();
    return status; /* the lock goes with the process */
}
