/* A start from what an older program handed over: the process is the same, its children serve. Old
 * settings stay in force until the new children are ready. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "supervisor/metric_totals.h"
#include "supervisor/supervisor_private.h"

static int parse(const char *name, const char *text, struct settings **ret)
{
    struct settings_report report;

    settings_report_init(&report);
    const int err = settings_parse(name, text, strlen(text), ret, &report);
    if (err < 0) {
        log_error("this version can't read the configuration that runs", "what", name, "why",
                  report.errors.len > 0 ? report.errors.bytes : strerror(-err), "mend",
                  "stop the old outboxd and start this one");
    }
    settings_report_done(&report);
    return err;
}

int takeover_settings(const struct upgrade_state *state, struct settings *fresh,
                      struct settings **ret_configured, struct settings **ret_running)
{
    struct buf left;
    int err = parse("as it was started", state->configured, ret_configured);

    err = err == 0 ? parse("as it runs", state->running, ret_running) : err;
    buf_init(&left, 1U << 16);
    if (err == 0) {
        err = supervisor_keep_running(fresh, *ret_configured, *ret_running, &left);
    }
    if (err == 0 && left.len > 0) {
        log_warn("changed settings that need a restart: left as they are", "settings", left.bytes);
    }
    buf_done(&left);
    return err;
}

static int take_settings(struct supervisor *supervisor, const struct upgrade_state *state)
{
    struct settings *running = NULL;
    int err = takeover_settings(state, supervisor->settings, &supervisor->configured, &running);

    struct credentials credentials = {0};

    if (err == 0 && state->credentials) { /* a version before ours has none */
        err = credentials_parse(span_of(state->credentials), &credentials);
    }
    if (err < 0) {
        settings_destroy(&running);
        return err;
    }
    supervisor->next = supervisor->settings;
    supervisor->next_credentials = supervisor->credentials;
    supervisor->settings = running;
    supervisor->credentials = credentials;
    return 0;
}

/* The same segment if this version lays it out the same; else a new one, and a new generation: the
 * older children keep theirs until they exit. */
static int take_segment(struct supervisor *supervisor, const struct upgrade_state *state)
{
    /* In tests one version has to stand for two. */
    const bool is_other = getenv("OUTBOXD_TEST_LAYOUT");
    int err = is_other ? -EPROTO
                       : shm_adopt(&supervisor->shm, state->shm, supervisor->generation.state_dir);

    if (err == 0) {
        memcpy(supervisor->wakes.fds, state->wakes, sizeof(supervisor->wakes.fds));
        return 0;
    }
    log_info("shared memory of another layout: the new children get one of their own");
    close(state->shm);
    for (size_t i = 0; i < SHM_SLOT_MAX; i++) {
        if (state->wakes[i] >= 0) {
            close(state->wakes[i]);
        }
    }
    err = generation_renew(&supervisor->generation);
    err = err == 0 ? supervisor_make_segment(supervisor) : err;
    if (err == 0) {
        metric_totals_import(metrics_of(supervisor->shm), state->totals);
    }
    return err;
}

int supervisor_take_over(struct supervisor *supervisor, const struct upgrade_state *state)
{
    int err = take_settings(supervisor, state);

    supervisor->is_upgraded = true;
    supervisor->is_ready = true;
    memcpy(supervisor->lifeline, state->lifeline, sizeof(supervisor->lifeline));
    memcpy(supervisor->listeners.fds, state->listeners,
           state->listener_count * sizeof(state->listeners[0]));
    supervisor->listeners.count = state->listener_count;
    kind_labels_parse(&supervisor->kinds, state->kinds);
    err = err == 0 ? supervisor_find_privileges(supervisor) : err;
    err = err == 0 ? generation_resume(&supervisor->generation, supervisor->settings, state) : err;
    return err == 0 ? take_segment(supervisor, state) : err;
}

int supervisor_restore_children(struct supervisor *supervisor, const struct upgrade_state *state)
{
    const bool is_foreign = shm_generation(supervisor->shm) != state->generation;
    int err = supervisor_make_children(supervisor, is_foreign ? (uint32_t)state->child_count : 0);

    for (size_t i = 0; i < state->child_count && err == 0; i++) {
        const bool is_ours = state->children[i].generation == shm_generation(supervisor->shm);

        err = children_restore(supervisor->children, &state->children[i], !is_ours);
    }
    if (err == 0) {
        log_info("took over from the program before", "children", LOG_I64(state->child_count));
    }
    return err;
}
