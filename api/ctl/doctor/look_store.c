/* Connects to the store as outboxd would, asks what it is, and goes: nothing is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/ctl/doctor/look.h"
#include "common/base/clock.h"
#include "common/base/embedded_url.h"
#include "common/base/store_password.h"

#define LOOK_MS 3000

struct looking {
    struct facts *facts;
    struct store *store;
    uv_loop_t loop;
    uv_timer_t timer;
    int64_t asked_wall_ms;
    bool is_over;
};

static void on_closed(void *arg)
{
    (void)arg;
}

static void end(struct looking *looking)
{
    if (!looking->is_over) {
        looking->is_over = true;
        uv_close((uv_handle_t *)&looking->timer, NULL);
        store_close(looking->store, on_closed, NULL);
    }
}

static void on_timeout(uv_timer_t *timer)
{
    end(timer->data);
}

static void on_facts(enum store_result result, const struct server_facts *server, void *arg)
{
    struct looking *looking = arg;
    struct facts *facts = looking->facts;

    if (looking->is_over) {
        return; /* the answer to a close */
    }
    facts->store_result = result;
    if (result == STORE_OK) {
        /* It read its clock between our question and now. */
        const int64_t ours_ms = (looking->asked_wall_ms + clock_wall_ms()) / 2;

        facts->store = *server;
        facts->has_store_clock = server->now_ms > 0;
        facts->store_ahead_ms = server->now_ms - ours_ms;
    }
    end(looking);
}

static void on_state(struct store *store, bool is_up, enum store_result why, void *arg)
{
    struct looking *looking = arg;

    if (looking->is_over) {
        return;
    }
    if (is_up) {
        looking->asked_wall_ms = clock_wall_ms();
        store_facts(store, on_facts, looking);
    } else {
        looking->facts->store_result = why;
        /* Another try would tell the same: a wrong password, or a store that is not to run. */
        if (why == STORE_NOAUTH || why == STORE_DISTRUSTED ||
            (looking->facts->is_embedded && looking->facts->process_count == 0)) {
            end(looking);
        }
    }
}

static void ask(struct looking *looking, const char *url)
{
    const struct settings *settings = looking->facts->settings;
    const struct store_options options = {
        .url = url,
        .connections = 1,
        .max_outstanding = 16,
        .connect_timeout_ms = LOOK_MS,
        .command_timeout_ms = LOOK_MS,
        .durability = settings->durability,
        .dedupe_ttl_ms = settings->dedupe_ttl,
        .lock_ttl_ms = settings_lock_ttl_ms(settings),
        .events_max = settings->events_max,
        .on_state = on_state,
        .arg = looking,
    };

    (void)uv_loop_init(&looking->loop);
    (void)uv_timer_init(&looking->loop, &looking->timer);
    looking->timer.data = looking;
    if (store_open(&looking->loop, &options, &looking->store) == 0) {
        (void)uv_timer_start(&looking->timer, on_timeout, LOOK_MS, 0);
    } else {
        looking->is_over = true;
        uv_close((uv_handle_t *)&looking->timer, NULL);
    }
    (void)uv_run(&looking->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&looking->loop);
}

/* The URL for people: what stands between the user and the @ is nobody's business. */
static void show_url(const char *url, char *out, size_t cap)
{
    const struct store_password found = store_password_find(url);

    if (found.has_password) {
        snprintf(out, cap, "%.*s***%s", (int)found.password, url,
                 url + found.password + found.password_len);
    } else {
        snprintf(out, cap, "%s", url);
    }
}

void look_at_store(struct facts *facts)
{
    struct looking looking = {.facts = facts};
    char embedded[EMBEDDED_URL_MAX];
    const char *url = facts->settings ? facts->settings->store_url : NULL;

    if (!facts->settings) {
        return;
    }
    facts->store_result = STORE_AWAY;
    facts->is_embedded = !url || !*url;
    if (facts->is_embedded) {
        if (embedded_url_make(facts->settings->state_dir, embedded) < 0) {
            return;
        }
        url = embedded;
    }
    facts->is_store_local = facts->is_embedded || strncmp(url, "unix:", 5) == 0;
    show_url(url, facts->store_url, sizeof(facts->store_url));
    ask(&looking, url);
}
