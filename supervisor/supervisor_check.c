/* `--check`: what can be known without starting anything. Beside an outboxd that runs (USR2): also
 * that its configuration can be read and that its store suits this version. */
#include <errno.h>
#include <string.h>
#include <uv.h>

#include "common/base/log.h"
#include "supervisor/preflight.h"
#include "supervisor/programs.h"
#include "supervisor/supervisor.h"
#include "supervisor/supervisor_private.h"

#define STORE_LIMIT_MS 20000

struct check {
    uv_loop_t loop;
    struct store *store;
    struct preflight preflight;
    enum preflight_verdict verdict;
};

static void on_state(struct store *store, bool is_up, enum store_result why, void *arg)
{
    struct check *check = arg;

    (void)store;
    preflight_store_state(&check->preflight, is_up, why);
}

static void on_verdict(enum preflight_verdict verdict, void *arg)
{
    struct check *check = arg;

    check->verdict = verdict;
    store_close(check->store, NULL, NULL);
}

static int check_store(const struct settings *running)
{
    struct check check = {.verdict = PREFLIGHT_UNREACHABLE};
    const struct store_options options = {
        .url = running->store_url,
        .connections = 1,
        .max_outstanding = 100,
        .connect_timeout_ms = STORE_LIMIT_MS,
        .command_timeout_ms = STORE_LIMIT_MS,
        .durability = running->durability,
        .on_state = on_state,
        .arg = &check,
    };

    if (uv_loop_init(&check.loop) < 0) {
        return -ENOMEM;
    }
    int err = store_open(&check.loop, &options, &check.store);
    if (err == 0) {
        const struct preflight_options preflight = {
            .loop = &check.loop,
            .store = check.store,
            .durability = running->durability,
            .advice = "the store has to answer during an upgrade",
            .url = "the running one",
            .timeout_ms = STORE_LIMIT_MS,
            .done = on_verdict,
            .arg = &check,
        };

        preflight_start(&check.preflight, &preflight);
        uv_run(&check.loop, UV_RUN_DEFAULT);
        err = check.verdict == PREFLIGHT_PASSED ? 0 : -ENOTCONN;
    }
    (void)uv_loop_close(&check.loop); /* the process ends soon */
    return err;
}

static int check_takeover(const struct upgrade_state *state, const struct settings *settings)
{
    struct settings *fresh = NULL, *configured = NULL, *running = NULL;
    int err = settings_copy(settings, &fresh);

    err = err == 0 ? takeover_settings(state, fresh, &configured, &running) : err;
    err = err == 0 ? check_store(running) : err;
    settings_destroy(&fresh);
    settings_destroy(&configured);
    settings_destroy(&running);
    return err;
}

int supervisor_check(const struct settings *settings, const struct upgrade_state *state)
{
    struct program_path api, worker, store;
    int err = supervisor_find_programs(&api, &worker);

    if (err == 0 && !state && (!settings->store_url || !*settings->store_url)) {
        err = program_find_store(&store);
        if (err < 0) {
            log_error("no valkey-server and no redis-server found", "mend",
                      "install one, or set `store.url`");
        }
    }
    return err == 0 && state ? check_takeover(state, settings) : err;
}
