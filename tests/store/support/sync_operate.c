#include "tests/store/support/sync_operate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/store/store_accept_many.h"

/* Where a callback leaves its copy. */
struct waiting {
    bool is_done;
    enum store_result result;
    enum accept_result accepted;
    char id[64];
    struct sync_operated operated;
    struct confirm_answer confirmed;
};

static void wait_for(struct sync_store *s, const struct waiting *w)
{
    while (!w->is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    s->result = w->result;
    if (w->result != STORE_OK && !s->is_lossy) {
        fprintf(stderr, "the store answered: %s\n", store_result_name(w->result));
        abort();
    }
}

/* Marks it as answered. False: there is no answer. */
static bool is_answered(enum store_result result, struct waiting *w)
{
    w->is_done = true;
    w->result = result;
    return result == STORE_OK;
}

static void copy_text(struct span from, char *to, size_t cap)
{
    snprintf(to, cap, "%.*s", (int)from.len, from.len > 0 ? from.ptr : "");
}

static void on_accept(enum store_result result, const struct accept_answer *answer, void *arg)
{
    struct waiting *w = arg;

    if (is_answered(result, w)) {
        w->accepted = answer->result;
        copy_text(answer->id, w->id, sizeof(w->id));
    }
}

static void on_accept_many(enum store_result result, const struct accept_many_item *items,
                           size_t count, void *arg)
{
    struct waiting *w = arg;

    if (is_answered(result, w)) {
        if (count != 1 || items[0].result != STORE_OK) {
            fprintf(stderr, "the store answered %zu items\n", count);
            abort();
        }
        w->accepted = items[0].answer.result;
        if (items[0].answer.id.len > 0) {
            copy_text(items[0].answer.id, w->id, sizeof(w->id));
        }
    }
}

static void accept_by_many(struct sync_store *s, const struct accept_request *request,
                           struct waiting *w)
{
    struct accept_many *many =
        accept_many_create(s->store, partition_of(request->workspace.ptr, request->workspace.len));

    if (!many || accept_many_add(many, request) < 0) {
        abort();
    }
    copy_text(request->id, w->id, sizeof(w->id)); /* an empty one in the answer stands for it */
    accept_many_send(&many, on_accept_many, w);
}

enum accept_result sync_accept_entry(struct sync_store *s, const struct settings *settings,
                                     const struct sync_entry *entry, char *ret_id)
{
    struct waiting w = {0};
    char flags[ENTRY_FLAGS_MAX];
    const size_t flag_count =
        entry_flags_of(settings_kind(settings, entry->kind, strlen(entry->kind)), flags);
    struct entry_body body = {
        .client_message_id = span_of(entry->cmid),
        .kind = span_of(entry->kind),
        .payload = span_of(entry->payload),
        .depends_on_count = entry->dep_count,
    };
    for (uint32_t i = 0; i < entry->dep_count; i++) {
        body.depends_on[i] = span_of(entry->depends_on[i]);
    }
    const struct accept_request request = {
        .workspace = span_of(entry->ws),
        .session = span_of(entry->session),
        .id = span_of(entry->id),
        .digest = span_of("digest"),
        .flags = {flags, flag_count},
        .body = &body,
        .session_cap = entry->cap,
    };

    if (entry->by_many) {
        accept_by_many(s, &request, &w);
    } else {
        store_accept(s->store, &request, on_accept, &w);
    }
    wait_for(s, &w);
    if (ret_id) {
        memcpy(ret_id, w.id, sizeof(w.id));
    }
    return w.accepted;
}

static void on_operated(enum store_result result, const struct operate_answer *answer, void *arg)
{
    struct waiting *w = arg;

    if (is_answered(result, w)) {
        w->operated.result = answer->result;
        w->operated.what = answer->what;
        copy_text(answer->subject, w->operated.subject, sizeof(w->operated.subject));
        copy_text(answer->how, w->operated.how, sizeof(w->operated.how));
    }
}

struct sync_operated sync_operate(struct sync_store *s, const struct settings *settings,
                                  enum resolver_operation operation, const char *ws, const char *id,
                                  const char *new_id, const char *patch)
{
    struct waiting w = {0};
    const struct operate_request request = {
        .workspace = span_of(ws),
        .id = span_of(id),
        .operation = operation,
        .patch = {.payload = span_of(patch)},
        .new_id = span_of(new_id),
        .settings = settings,
    };

    store_operate(s->store, &request, on_operated, &w);
    wait_for(s, &w);
    return w.operated;
}

static void on_confirmed(enum store_result result, const struct confirm_answer *answer, void *arg)
{
    struct waiting *w = arg;

    if (is_answered(result, w)) {
        w->confirmed = *answer;
        w->confirmed.session = (struct span){0}; /* it lives no longer than the reply */
    }
}

struct confirm_answer sync_confirm(struct sync_store *s, const char *ws, const char *id,
                                   const char *session, const char *cmid, const char *result,
                                   int64_t wait_for_answer_ms)
{
    struct waiting w = {0};
    const struct confirm_request request = {
        .workspace = span_of(ws),
        .id = span_of(id),
        .session = span_of(session),
        .client_message_id = span_of(cmid),
        .result = span_of(result),
        .wait_for_answer_ms = wait_for_answer_ms,
    };

    store_confirm(s->store, &request, on_confirmed, &w);
    wait_for(s, &w);
    return w.confirmed;
}

struct settings *sync_settings(const char *yaml)
{
    struct settings_report report;
    struct settings *settings = NULL;

    settings_report_init(&report);
    if (settings_parse("test", yaml, strlen(yaml), &settings, &report) < 0) {
        fprintf(stderr, "%.*s\n", (int)report.errors.len, report.errors.bytes);
        abort();
    }
    settings_report_done(&report);
    return settings;
}
