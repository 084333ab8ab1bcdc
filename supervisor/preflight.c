/* Asks the store what it is until it answers, and judges the answer. */
#include "supervisor/preflight.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"

#define TICK_MS 50
#define TELL_MS 5000

static void end(struct preflight *preflight, enum preflight_verdict verdict)
{
    if (preflight->is_over) {
        return;
    }
    preflight_stop(preflight);
    preflight->options.done(verdict, preflight->options.arg);
}

static void refuse(struct preflight *preflight, const struct server_facts *facts, const char *why)
{
    log_error("the store cannot be used", "store", preflight->options.url, "server", facts->name,
              "version", facts->version, "why", why);
    end(preflight, PREFLIGHT_REFUSED);
}

static void on_meta(enum store_result result, bool yes, void *arg)
{
    struct preflight *preflight = arg;

    preflight->is_asking = false;
    if (preflight->is_over || result != STORE_OK) {
        return; /* asked again at the next tick */
    }
    if (!yes) {
        log_error("the store was written with another layout version or partition count", "store",
                  preflight->options.url, "mend",
                  "use the outboxd that wrote it, or another store or database");
        end(preflight, PREFLIGHT_NOT_OURS);
        return;
    }
    end(preflight, PREFLIGHT_PASSED);
}

static void judge(struct preflight *preflight, const struct server_facts *facts)
{
    const char *why = store_version_refusal(facts->version);

    if (!why) {
        why = store_facts_refusal(facts, preflight->options.durability);
    }
    if (why) {
        if (!preflight->options.mend || !preflight->options.mend(preflight->options.arg)) {
            refuse(preflight, facts, why);
        }
        return;
    }
    preflight->is_asking = true;
    store_check_meta(preflight->options.store, on_meta, preflight);
}

static void on_facts(enum store_result result, const struct server_facts *facts, void *arg)
{
    struct preflight *preflight = arg;

    preflight->is_asking = false;
    if (preflight->is_over) {
        return;
    }
    if (result == STORE_NOAUTH) {
        log_error("the store's user may not read its settings (CONFIG GET, INFO)", "store",
                  preflight->options.url, "mend",
                  "ACL SETUSER … +config|get +info, or set store.password_file");
        end(preflight, PREFLIGHT_REFUSED);
        return;
    }
    preflight->why = result;
    if (result == STORE_OK && !facts->is_loading) {
        judge(preflight, facts);
    }
}

static void tell(struct preflight *preflight, int64_t now_ms)
{
    if (now_ms - preflight->told_ms < TELL_MS) {
        return;
    }
    preflight->told_ms = now_ms;
    log_warn("waiting for the store", "store", preflight->options.url, "state",
             store_result_help(preflight->why));
}

static void on_tick(uv_timer_t *timer)
{
    struct preflight *preflight = timer->data;
    const int64_t now_ms = clock_mono_ms();

    if (preflight->why == STORE_LOADING) {
        preflight->deadline_ms = now_ms + preflight->options.timeout_ms;
    }
    tell(preflight, now_ms);
    if (preflight->is_asking) {
        return; /* an answer or its time limit is on its way */
    }
    if (store_is_up(preflight->options.store)) {
        preflight->is_asking = true;
        store_facts(preflight->options.store, on_facts, preflight);
        return;
    }
    if (now_ms >= preflight->deadline_ms) {
        log_error("cannot reach the store", "store", preflight->options.url, "why",
                  store_result_help(preflight->why), "mend", preflight->options.advice);
        end(preflight, PREFLIGHT_UNREACHABLE);
    }
}

void preflight_start(struct preflight *preflight, const struct preflight_options *options)
{
    const int64_t now_ms = clock_mono_ms();

    *preflight = (struct preflight){
        .options = *options,
        .deadline_ms = now_ms + options->timeout_ms,
        .told_ms = now_ms,
        .why = STORE_AWAY,
    };
    (void)uv_timer_init(options->loop, &preflight->timer); /* never fails */
    preflight->timer.data = preflight;
    uv_timer_start(&preflight->timer, on_tick, 1, TICK_MS); /* can't fail: has a callback */
}

void preflight_store_state(struct preflight *preflight, bool is_up, enum store_result why)
{
    if (preflight->is_over) {
        return;
    }
    preflight->why = is_up ? STORE_OK : why;
    if (!is_up && why == STORE_NOAUTH) {
        log_error("the store refuses our password or user", "store", preflight->options.url, "mend",
                  "set store.password_file, or user and password in store.url");
        end(preflight, PREFLIGHT_REFUSED);
    } else if (!is_up && why == STORE_DISTRUSTED) {
        log_error("the store cannot prove that it is the one", "store", preflight->options.url,
                  "mend",
                  "name its authority's certificate (store.url: …?ca=FILE) and the host as its "
                  "certificate does; has it run out?");
        end(preflight, PREFLIGHT_REFUSED);
    }
}

void preflight_stop(struct preflight *preflight)
{
    if (!preflight->is_over) {
        preflight->is_over = true;
        uv_close((uv_handle_t *)&preflight->timer, NULL);
    }
}
