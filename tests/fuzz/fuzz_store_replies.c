/* What stands in the store, read by all who read it: every typed call with garbage for an answer.
 * An input is the name of a call and the replies (store_garbage.h). Entries and events that come
 * out of it are shown, claims are made into requests: whatever stood there, an answer is JSON and a
 * request is one or a reason why not. */
#include <errno.h>
#include <jansson.h>

#include "api/entry_json.h"
#include "api/event_text.h"
#include "api/target_form.h"
#include "common/store/store_events.h"
#include "common/store/store_operate.h"
#include "common/store/store_sweep.h"
#include "common/store/store_workspace.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/store_garbage.h"
#include "worker/http_request.h"
#include "worker/ledger_request.h"
#include "worker/opencode_request.h"
#include "worker/target.h"
#include "worker/transfer.h"

#define OUT_MAX (1U << 22)
#define NOW_MS  1733000000000

static const char configuration[] =
    "target: {url: 'http://127.0.0.1:9000/{workspace}'}\n"
    "kinds:\n"
    "  - {name: note, url: '/n/{payload.a}/{session}', idempotent: true}\n"
    "  - {name: pay, url: /p, body: '{\"k\": {payload}, \"t\": {payload.t}}',\n"
    "     verify: {url: '/by/{id}', delivered: 200, absent: 404}, follow_up_edit: note,\n"
    "     follow_up_remove: note}\n";

static const struct settings *settings(void)
{
    static struct settings *parsed;
    struct settings_report report;

    if (!parsed) {
        settings_report_init(&report);
        if (settings_parse("fuzz", configuration, strlen(configuration), &parsed, &report) < 0) {
            fputs(report.errors.bytes, stderr);
        }
        settings_report_done(&report);
        MUST_HOLD(parsed);
    }
    return parsed;
}

static void must_be_json(const struct buf *out)
{
    MUST_HOLD(out->bytes && out->len > 0);
    json_t *root = json_loadb(out->bytes, out->len,
                              JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY, NULL);

    if (!root) {
        fprintf(stderr, "%.*s\n", (int)out->len, out->bytes);
    }
    MUST_HOLD(root);
    json_decref(root);
}

/* ---- entries as they are shown ---- */

static void show(const struct entry *entry)
{
    const struct entry_context context = {.now_ms = NOW_MS,
                                          .stuck_after_ms = 60000,
                                          .is_in_flight = true,
                                          .in_flight_since_ms = entry->accepted_at_ms};
    struct entry *copy = entry_copy(entry);
    struct buf out;

    MUST_HOLD((unsigned)entry->status < STATUS_COUNT);
    MUST_HOLD(copy);
    buf_init(&out, OUT_MAX);
    entry_json_write(copy, span_of("ob_1"), &context, &out);
    must_be_json(&out);
    buf_done(&out);
    free(copy);
}

static void on_get(enum store_result result, const struct get_answer *answer, void *arg)
{
    struct buf out;

    (void)arg;
    if (result != STORE_OK) {
        return;
    }
    if (answer->entry) {
        show(answer->entry);
    }
    if (answer->tombstone) {
        buf_init(&out, OUT_MAX);
        entry_json_write_tombstone(answer->tombstone, span_of("ob_1"), &out);
        must_be_json(&out);
        buf_done(&out);
    }
}

static void on_list(enum store_result result, const struct list_answer *answer, void *arg)
{
    (void)arg;
    for (size_t i = 0; result == STORE_OK && i < answer->count; i++) {
        show(&answer->entries[i]);
    }
}

static void on_operate(enum store_result result, const struct operate_answer *answer, void *arg)
{
    (void)arg;
    if (result == STORE_OK && answer->entry) {
        show(answer->entry);
    }
}

/* ---- entries as they are sent ---- */

static void check_request(int err, const struct http_request_text *text,
                          const struct transfer_request *request)
{
    if (err == -EINVAL) {
        MUST_HOLD(text->problem[0]);
    }
    if (err == 0) {
        MUST_HOLD(request->header_count <= TRANSFER_HEADERS_MAX);
        for (size_t i = 0; i < request->header_count; i++) {
            MUST_HOLD(!strpbrk(request->headers[i], "\r\n")); /* nobody adds a header of his own */
        }
    }
}

static void build(const struct entry *entry, const struct target *target, struct span workspace)
{
    const struct settings *s = settings();
    const struct ledger_address address = {target, "/ledger.v1"};

    for (size_t i = 0; i < s->kind_count; i++) {
        const struct kind *kind = &s->kinds[i];
        struct transfer_request request = {0};
        struct http_request_text text;

        http_request_text_init(&text);
        check_request(http_request_build(kind, target, workspace, entry, 1, &text, &request), &text,
                      &request);
        http_request_text_done(&text);
        http_request_text_init(&text);
        request = (struct transfer_request){0};
        if (kind->verify.url) {
            check_request(
                http_request_build_lookup(kind, target, workspace, entry, 1000, &text, &request),
                &text, &request);
        }
        http_request_text_done(&text);
    }
    struct transfer_request request = {0};
    struct http_request_text text;
    struct buf out;

    http_request_text_init(&text);
    check_request(ledger_request_deliver(&address, entry, ledger_last_row(entry, entry->attempts),
                                         entry->sends, 1000, &text, &request),
                  &text, &request);
    http_request_text_done(&text);
    buf_init(&out, OUT_MAX);
    if (opencode_prompt_body(entry, NULL, &out) == 0) {
        must_be_json(&out);
    }
    buf_done(&out);
}

static const char *closed(const char *url, void *arg)
{
    (void)url;
    (void)arg;
    return "closed";
}

static void send(struct span workspace, const struct entry *entry, struct span target_conf)
{
    const struct target fallback = target_of_settings(settings());
    struct target target;
    struct json_t *owner = NULL;
    struct buf out;

    show(entry);
    if (target_read(target_conf, &fallback, workspace, &target, &owner) == 0) {
        build(entry, &target, workspace);
    }
    json_decref(owner);
    buf_init(&out, OUT_MAX);
    if (target_form_show(target_conf, closed, NULL, &out)) {
        must_be_json(&out);
    }
    buf_done(&out);
}

static void on_claim(enum store_result result, const struct claim_answer *answer, void *arg)
{
    (void)arg;
    for (size_t i = 0; result == STORE_OK && i < answer->count; i++) {
        const struct claim *claim = &answer->claims[i];

        MUST_HOLD(claim->workspace.len > 0 && claim->entry.session.len > 0);
        send(claim->workspace, &claim->entry, claim->target_conf);
    }
}

static void on_outcome(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    (void)arg;
    if (result == STORE_OK && answer->next) {
        send(answer->next->workspace, &answer->next->entry, answer->next->target_conf);
    }
}

static void on_sweep(enum store_result result, const struct sweep_take_answer *answer, void *arg)
{
    (void)arg;
    for (size_t i = 0; result == STORE_OK && i < answer->count; i++) {
        const struct swept_entry *swept = &answer->entries[i];

        send(swept->workspace, &swept->entry, swept->target_conf);
    }
}

/* ---- events ---- */

static void show_event(const struct store_event *event)
{
    struct buf out;

    buf_init(&out, EVENT_TEXT_MAX);
    event_text_data(event, &out);
    MUST_HOLD(out.len > 8 && memcmp(out.bytes, "data: ", 6) == 0);
    MUST_HOLD(memcmp(out.bytes + out.len - 2, "\n\n", 2) == 0);
    MUST_HOLD(memchr(out.bytes, '\n', out.len) == out.bytes + out.len - 2); /* one event, no more */
    json_t *root = json_loadb(out.bytes + 6, out.len - 8, JSON_ALLOW_NUL, NULL);

    MUST_HOLD(root);
    json_decref(root);
    buf_done(&out);
}

static void on_events(enum store_result result, struct events_answer *answer, void *arg)
{
    struct store_event event;

    (void)arg;
    while (result == STORE_OK && store_event_next(&answer->events, &event)) {
        show_event(&event);
    }
}

static void on_delayed(enum store_result result, struct delayed_answer *answer, void *arg)
{
    struct store_event event;

    (void)arg;
    while (result == STORE_OK && store_delayed_next(answer, &event)) {
        show_event(&event);
    }
}

/* ---- what only has to end well ---- */

static void on_flags(enum store_result result, struct span flags, void *arg)
{
    (void)result;
    (void)arg;
    for (size_t i = 0; i < flags.len; i++) {
        (void)(flags.ptr[i] == '1');
    }
}

static void on_flag(enum store_result result, bool yes, void *arg)
{
    (void)result;
    (void)yes;
    (void)arg;
}

static void on_accept(enum store_result result, const struct accept_answer *answer, void *arg)
{
    (void)arg;
    MUST_HOLD(result != STORE_OK || answer->result <= ACCEPT_SESSION_FULL);
}

static void on_confirm(enum store_result result, const struct confirm_answer *answer, void *arg)
{
    (void)arg;
    MUST_HOLD(result != STORE_OK || answer->session.len <= SESSION_MAX);
}

static void on_counts(enum store_result result, const struct counts_answer *answer, void *arg)
{
    (void)arg;
    MUST_HOLD(result != STORE_OK || answer->oldest_open_age_ms >= 0);
}

static void on_held(enum store_result result, const struct held_session *held, size_t count,
                    void *arg)
{
    (void)arg;
    for (size_t i = 0; result == STORE_OK && i < count; i++) {
        MUST_HOLD(held[i].workspace.len > 0 && held[i].session.len > 0);
    }
}

static void on_audit(enum store_result result, const struct audit_answer *answer, void *arg)
{
    (void)result;
    (void)answer;
    (void)arg;
}

static void on_facts(enum store_result result, const struct server_facts *facts, void *arg)
{
    const struct durability durability = {.level = DURABILITY_FSYNC};

    (void)arg;
    if (result == STORE_OK) {
        (void)store_version_refusal(facts->version);
        (void)store_facts_refusal(facts, durability);
    }
}

static void on_beat(enum store_result result, bool exists, int64_t counter, void *arg)
{
    (void)result;
    (void)exists;
    (void)counter;
    (void)arg;
}

static void on_begin_send(enum store_result result, const struct begin_send_answer *answer,
                          void *arg)
{
    (void)result;
    (void)answer;
    (void)arg;
}

static void on_walk(enum store_result result, const struct walk_answer *answer, void *arg)
{
    (void)arg;
    MUST_HOLD(result != STORE_OK || answer);
}

static void on_workspaces(enum store_result result, const struct workspaces_answer *answer,
                          void *arg)
{
    (void)arg;
    for (size_t i = 0; result == STORE_OK && i < answer->count; i++) {
        MUST_HOLD(answer->workspaces[i].name.len <= WORKSPACE_MAX);
    }
}

static void on_sessions(enum store_result result, const struct sessions_answer *answer, void *arg)
{
    (void)arg;
    for (size_t i = 0; result == STORE_OK && i < answer->count; i++) {
        MUST_HOLD(answer->sessions[i].len <= SESSION_MAX);
    }
}

/* ---- the calls ---- */

static const struct claim_ref a_claim = {.workspace = {"w", 1},
                                         .session = {"s", 1},
                                         .id = {"ob_1", 4},
                                         .token = {"n.1.4.a.1"},
                                         .sends = 1,
                                         .status = STATUS_DELIVERING};

static void operate(struct store *store, enum resolver_operation operation)
{
    struct operate_request request = {.workspace = span_of("w"),
                                      .id = span_of("ob_1"),
                                      .operation = operation,
                                      .new_id = span_of("ob_2"),
                                      .settings = settings()};

    if (operation == RESOLVER_EDIT) {
        request.patch.payload = span_of("{\"a\":{\"b\":1},\"c\":null}");
        request.patch.text = span_of("\"t\"");
    }
    store_operate(store, &request, on_operate, NULL);
}

static void walk(struct store *store, enum walk_kind kind)
{
    const struct walk_request request = {.kind = kind, .workspace = span_of("w")};

    store_walk(store, &request, on_walk, NULL);
}

static void claim_some(struct store *store)
{
    const struct claim_request request = {.token = a_claim.token, .max = 8, .max_per_workspace = 8};

    store_claim(store, &request, on_claim, NULL);
}

static void settle_it(struct store *store)
{
    const struct settle_request request = {.ref = a_claim};

    store_settle(store, &request, on_outcome, NULL);
}

static void confirm_it(struct store *store)
{
    const struct confirm_request request = {.workspace = span_of("w"), .id = span_of("ob_1")};

    store_confirm(store, &request, on_confirm, NULL);
}

static void accept_one(struct store *store)
{
    const struct entry_body body = {.kind = span_of("note")};
    const struct accept_request request = {.workspace = span_of("w"),
                                           .session = span_of("s"),
                                           .id = span_of("ob_1"),
                                           .digest = span_of("d"),
                                           .flags = span_of("s"),
                                           .body = &body,
                                           .session_cap = 25};

    store_accept(store, &request, on_accept, NULL);
}

#define WORKSPACE ((struct span){"w", 1})
#define SESSION   ((struct span){"s", 1})
#define ENTRY     ((struct span){"ob_1", 4})
#define NOTHING   ((struct span){"", 0})

/* A name and what it calls. */
#define CALLS(ROW)                                                                                 \
    ROW(get, store_get(store, WORKSPACE, ENTRY, on_get, NULL))                                     \
    ROW(list, store_list(store, WORKSPACE, SESSION, 0, 100, on_list, NULL))                        \
    ROW(retry, operate(store, RESOLVER_RETRY))                                                     \
    ROW(edit, operate(store, RESOLVER_EDIT))                                                       \
    ROW(remove, operate(store, RESOLVER_REMOVE))                                                   \
    ROW(claim, claim_some(store))                                                                  \
    ROW(finish, store_finish(store, &a_claim, VIA_ANSWER, NOTHING, true, on_outcome, NULL))        \
    ROW(settle, settle_it(store))                                                                  \
    ROW(sweep, store_sweep_take(store, 0, 8, 1000, on_sweep, NULL))                                \
    ROW(events, store_events(store, 0, (struct stream_id){0}, 100, on_events, NULL))               \
    ROW(delayed, store_delayed(store, 0, 1000, 0, on_delayed, NULL))                               \
    ROW(accept, accept_one(store))                                                                 \
    ROW(confirm, confirm_it(store))                                                                \
    ROW(counts, store_counts(store, 0, on_counts, NULL))                                           \
    ROW(held, store_held(store, 0, NOTHING, on_held, NULL))                                        \
    ROW(audit, store_audit(store, 0, 0, 8, on_audit, NULL))                                        \
    ROW(facts, store_facts(store, on_facts, NULL))                                                 \
    ROW(beat, store_read_beat(store, "n", 1, on_beat, NULL))                                       \
    ROW(begin, store_begin_send(store, &a_claim, on_begin_send, NULL))                             \
    ROW(park, walk(store, WALK_PARK))                                                              \
    ROW(cleanup, walk(store, WALK_CLEANUP))                                                        \
    ROW(names, store_workspaces(store, 0, NOTHING, NOTHING, 100, on_workspaces, NULL))             \
    ROW(sessions, store_sessions(store, WORKSPACE, NOTHING, on_sessions, NULL))                    \
    ROW(meta, store_check_meta(store, on_flag, NULL))                                              \
    ROW(recover, store_recover(store, 0, span_of("w s t "), on_flags, NULL))

#define DEFINE_CALL(name, expression)                                                              \
    static void call_##name(struct store *store)                                                   \
    {                                                                                              \
        expression;                                                                                \
    }
CALLS(DEFINE_CALL)
#undef DEFINE_CALL

static const struct {
    const char *name;
    void (*run)(struct store *store);
} calls[] = {
#define CALL_ROW(name, expression) {#name, call_##name},
    CALLS(CALL_ROW)
#undef CALL_ROW
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *blank = len > 0 ? memchr(bytes, ' ', len) : NULL;
    const struct span name = {(const char *)bytes, blank ? (size_t)(blank - bytes) : len};
    struct store_garbage garbage;

    store_garbage_init(&garbage, (struct span){name.ptr + name.len, len - name.len});
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (span_equal(name, span_of(calls[i].name))) {
            calls[i].run(&garbage.store);
        }
    }
    store_garbage_run(&garbage);
    return 0;
}
