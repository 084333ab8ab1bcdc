/* outboxd-worker: started by the supervisor only. Takes what it inherits, reads its configuration,
 * runs. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/inherit.h"
#include "common/base/inherit_settings.h"
#include "common/base/kind_labels.h"
#include "common/base/log.h"
#include "common/base/sandbox.h"
#include "common/base/settings.h"
#include "worker/worker.h"

int main(int argc, char **argv)
{
    struct inherit_args args;
    struct settings *settings = NULL;
    struct kind_labels labels;
    int status;

    if (inherit_parse_args(argc, argv, &args) < 0) {
        return 2;
    }
    inherit_protect();
    if (inherit_read_settings("outboxd-worker", &settings) < 0 || !settings) {
        return 2;
    }
    kind_labels_parse(&labels, args.kinds ? args.kinds : "");
    kind_labels_apply(&labels, settings);
    inherit_ignore_signals();
    if (log_init("worker", settings->log_level, settings->log_format, settings->log_file) < 0) {
        fprintf(stderr, "outboxd-worker: cannot open the log file (setting log.file)\n");
    }
    sandbox_enter_told(settings->sandbox);
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
