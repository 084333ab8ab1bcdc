#include "tests/store/support/sync_store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/core/keys.h"
#include "common/store/operate_plan.h"
#include "common/store/store_operate.h"

struct lifecycle_limits sync_limits = {
    .max_attempts = 3,
    .max_verify_attempts = 3,
    .max_transient_fails = 3,
    .retry_for_ms = 60000,
    .retry_backoff_ms = 1,
    .max_backoff_ms = 4,
    .verify_delay_ms = 1,
    .verify_backoff_ms = 1,
    .max_verify_backoff_ms = 4,
    .repoll_after_ms = 1,
};

/* Where a callback leaves its copy. */
struct waiting {
    bool is_done;
    enum store_result result;
    enum accept_result accepted;
    char id[64];
    struct taken_list list;
    struct outcome_copy outcome;
    struct begin_send_answer begun;
    bool yes;
    enum person_result person;
    char what[32];
    size_t count;
    struct audit_answer audited;
};

static void die(const char *what, enum store_result result)
{
    fprintf(stderr, "%s: %s\n", what, store_result_name(result));
    abort();
}

static void run_until(struct sync_store *s, struct waiting *w, const char *what)
{
    while (!w->is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    s->result = w->result;
    if (w->result != STORE_OK && !s->is_lossy) {
        die(what, w->result);
    }
}

static void copy_span(struct span from, char *to, size_t cap)
{
    size_t len = from.len < cap - 1 ? from.len : cap - 1;

    if (len > 0) { /* an empty span may point nowhere */
        memcpy(to, from.ptr, len);
    }
    to[len] = '\0';
}

void sync_copy_claim(const struct claim *claim, struct taken *to)
{
    copy_span(claim->workspace, to->workspace, sizeof(to->workspace));
    copy_span(claim->entry.session, to->session, sizeof(to->session));
    copy_span(claim->entry.id, to->id, sizeof(to->id));
    to->mode = claim->mode;
    to->token = claim->token;
    to->status = claim->entry.status;
    to->sends = claim->entry.sends;
    to->attempts = claim->entry.attempts;
    to->verify_attempts = claim->entry.verify_attempts;
    to->transient_fails = claim->entry.transient_fails;
    if (claim->entry.body.has_text) {
        copy_span(claim->entry.body.text, to->text, sizeof(to->text));
    }
    struct span payload;
    struct buf filled;

    buf_init(&filled, 1 << 20);
    if (entry_payload(&claim->entry, &filled, &payload) == 0) {
        copy_span(payload, to->payload, sizeof(to->payload));
    }
    buf_done(&filled);
}

static struct sync_store *open_store(const char *path, int64_t lock_ttl_ms, int64_t dedupe_ttl_ms,
                                     int64_t command_timeout_ms)
{
    struct sync_store *s = calloc(1, sizeof(*s));
    char url[256];

    if (!s || !(s->loop = calloc(1, sizeof(*s->loop))) || uv_loop_init(s->loop) < 0) {
        abort();
    }
    snprintf(url, sizeof(url), "unix://%s", path);
    const struct store_options options = {
        .url = url,
        .connections = 1,
        .max_outstanding = 10000,
        .connect_timeout_ms = 5000,
        .command_timeout_ms = command_timeout_ms,
        .durability = {.level = DURABILITY_FSYNC},
        .dedupe_ttl_ms = dedupe_ttl_ms,
        .lock_ttl_ms = lock_ttl_ms,
        .events_max = 100000,
    };
    if (store_open(s->loop, &options, &s->store) < 0) {
        abort();
    }
    while (!store_is_up(s->store)) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    return s;
}

struct sync_store *sync_store_open(const char *path, int64_t lock_ttl_ms, int64_t dedupe_ttl_ms)
{
    struct sync_store *s = open_store(path, lock_ttl_ms, dedupe_ttl_ms, 30000);

    s->raw = redisConnectUnix(path);
    if (!s->raw || s->raw->err) {
        abort();
    }
    return s;
}

struct sync_store *sync_store_open_lossy(const char *path, int64_t lock_ttl_ms,
                                         int64_t dedupe_ttl_ms)
{
    struct sync_store *s = open_store(path, lock_ttl_ms, dedupe_ttl_ms, 0);

    s->is_lossy = true;
    return s;
}

void sync_store_close(struct sync_store *s)
{
    store_close(s->store, NULL, NULL);
    uv_run(s->loop, UV_RUN_DEFAULT);
    uv_loop_close(s->loop);
    redisFree(s->raw);
    free(s->loop);
    free(s);
}

static void on_accept(enum store_result result, const struct accept_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    if (answer) {
        w->accepted = answer->result;
        copy_span(answer->id, w->id, sizeof(w->id));
    }
}

enum accept_result sync_accept(struct sync_store *s, const char *ws, const char *ses,
                               const char *id, const char *cmid, const char *digest,
                               const char *flags, uint32_t cap, char *ret_id)
{
    struct waiting w = {0};
    const struct entry_body body = {
        .client_message_id = span_of(cmid),
        .kind = span_of("note"),
        .text = span_of(id),
        .has_text = true,
    };
    const struct accept_request request = {
        .workspace = span_of(ws),
        .session = span_of(ses),
        .id = span_of(id),
        .digest = span_of(digest),
        .flags = span_of(flags),
        .body = &body,
        .session_cap = cap,
    };
    store_accept(s->store, &request, on_accept, &w);
    run_until(s, &w, "accept");
    if (ret_id) {
        memcpy(ret_id, w.id, sizeof(w.id));
    }
    return w.accepted;
}

static void on_claim(enum store_result result, const struct claim_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    if (!answer) {
        return;
    }
    w->list.has_more = answer->has_more;
    w->list.next_due_ms = answer->next_due_ms;
    for (size_t i = 0; i < answer->count && i < SYNC_CLAIMS_MAX; i++) {
        sync_copy_claim(&answer->claims[i], &w->list.items[w->list.count++]);
    }
}

struct taken_list sync_claim(struct sync_store *s, const char *ws_of_partition, const char *token,
                             uint32_t max, uint32_t per_workspace, const struct claim_quota *quotas,
                             size_t quota_count)
{
    struct waiting w = {0};
    struct claim_request request = {
        .partition = partition_of(ws_of_partition, strlen(ws_of_partition)),
        .max = max,
        .max_per_workspace = per_workspace,
        .quotas = quotas,
        .quota_count = quota_count,
    };
    snprintf(request.token.text, sizeof(request.token.text), "%s", token);
    store_claim(s->store, &request, on_claim, &w);
    run_until(s, &w, "claim");
    return w.list;
}

static struct claim_ref ref_of(const struct taken *taken)
{
    return (struct claim_ref){
        .workspace = span_of(taken->workspace),
        .session = span_of(taken->session),
        .id = span_of(taken->id),
        .token = taken->token,
        .sends = taken->sends,
        .status = taken->status,
    };
}

static void on_outcome(enum store_result result, const struct outcome_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    if (!answer) {
        return;
    }
    w->outcome.applied = answer->applied;
    w->outcome.next_due_ms = answer->next_due_ms;
    if (answer->next) {
        w->outcome.has_next = true;
        sync_copy_claim(answer->next, &w->outcome.next);
    }
}

struct outcome_copy sync_finish_via(struct sync_store *s, const struct taken *taken,
                                    enum sent_via via, const char *result, bool want_next)
{
    struct waiting w = {0};
    const struct claim_ref ref = ref_of(taken);

    store_finish(s->store, &ref, via, span_of(result), want_next, on_outcome, &w);
    run_until(s, &w, "finish");
    return w.outcome;
}

struct outcome_copy sync_finish_with(struct sync_store *s, const struct taken *taken,
                                     const char *result, bool want_next)
{
    return sync_finish_via(s, taken, VIA_ANSWER, result, want_next);
}

struct outcome_copy sync_finish(struct sync_store *s, const struct taken *taken, bool want_next)
{
    return sync_finish_with(s, taken, "", want_next);
}

struct outcome_copy sync_settle_request(struct sync_store *s, const struct taken *taken,
                                        struct settle_request *request)
{
    struct waiting w = {0};

    request->ref = ref_of(taken);
    store_settle(s->store, request, on_outcome, &w);
    run_until(s, &w, "settle");
    return w.outcome;
}

/* False: the table has no such transition. */
static bool settle(struct sync_store *s, const struct taken *taken, enum outcome outcome,
                   const char *current, bool want_next, struct outcome_copy *ret)
{
    struct settle_request request = {.want_next = want_next};
    const struct lifecycle_state state = {.status = taken->status, .attempts = taken->attempts};
    const struct lifecycle_input input = {.outcome = outcome, .retry_after_ms = -1};

    if (lifecycle_apply(&state, &input, &sync_limits, &request.step) < 0) {
        return false;
    }
    request.is_unsent = outcome == OUTCOME_TRANSIENT && taken->status == STATUS_DELIVERING;
    request.error_code =
        span_of(request.step.code == CODE_NONE || request.step.code == CODE_FROM_TARGET
                    ? outcome_name(outcome)
                    : error_code_name(request.step.code));
    request.error_message = span_of("as the test says");
    request.conflict_current = span_of(current);
    *ret = sync_settle_request(s, taken, &request);
    return true;
}

struct outcome_copy sync_settle_with(struct sync_store *s, const struct taken *taken,
                                     enum outcome outcome, const char *current, bool want_next)
{
    struct outcome_copy copy = {0}; /* stays so where that can't become of it */

    (void)settle(s, taken, outcome, current, want_next, &copy);
    return copy;
}

struct outcome_copy sync_settle(struct sync_store *s, const struct taken *taken,
                                enum outcome outcome, bool want_next)
{
    struct outcome_copy copy = {0};

    if (!settle(s, taken, outcome, "", want_next, &copy)) {
        die("settle: no such transition", STORE_OK);
    }
    return copy;
}

static void on_begin_send(enum store_result result, const struct begin_send_answer *answer,
                          void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    if (answer) {
        w->begun = *answer;
    }
}

struct begin_send_answer sync_begin_send(struct sync_store *s, const struct taken *taken)
{
    struct waiting w = {0};
    const struct claim_ref ref = ref_of(taken);

    store_begin_send(s->store, &ref, on_begin_send, &w);
    run_until(s, &w, "begin_send");
    return w.begun;
}

static void on_flag(enum store_result result, bool yes, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    w->yes = yes;
}

bool sync_note_baseline(struct sync_store *s, const struct taken *taken, const char *message)
{
    struct waiting w = {0};
    const struct claim_ref ref = ref_of(taken);

    store_note_baseline(s->store, &ref, span_of(message), on_flag, &w);
    run_until(s, &w, "note_baseline");
    return w.yes;
}

bool sync_release(struct sync_store *s, const struct taken *taken)
{
    struct waiting w = {0};
    const struct claim_ref ref = ref_of(taken);

    store_release(s->store, &ref, 0, on_flag, &w);
    run_until(s, &w, "release");
    return w.yes;
}

bool sync_hold(struct sync_store *s, const struct taken *taken, int64_t delay_ms,
               const char *reason)
{
    struct waiting w = {0};
    const struct claim_ref ref = ref_of(taken);

    store_hold(s->store, &ref, delay_ms, span_of(reason), on_flag, &w);
    run_until(s, &w, "hold");
    return w.yes;
}

static void on_flags(enum store_result result, struct span flags, void *arg)
{
    on_flag(result, flags.len == 1 && flags.ptr[0] == '1', arg);
}

bool sync_recover(struct sync_store *s, const char *ws, const char *ses, const char *token)
{
    struct waiting w = {0};
    struct buf list;

    buf_init(&list, 65536);
    (void)store_recover_list(&list, span_of(ws), span_of(ses), span_of(token));
    store_recover(s->store, partition_of(ws, strlen(ws)), (struct span){list.bytes, list.len},
                  on_flags, &w);
    run_until(s, &w, "recover");
    buf_done(&list);
    return w.yes;
}

static enum person_result person_result_of(enum operate_result result)
{
    switch (result) {
    case OPERATE_DONE:
        return PERSON_DONE;
    case OPERATE_NOT_FOUND:
    case OPERATE_ENDED:
        return PERSON_NOT_FOUND;
    case OPERATE_BUSY:
        return PERSON_BUSY;
    case OPERATE_NOT_FAILED:
        return PERSON_NOT_FAILED;
    case OPERATE_ALREADY_SENT:
    case OPERATE_BAD_PATCH:
    case OPERATE_TOO_MANY:
    case OPERATE_CONTENDED:
        break;
    }
    return PERSON_OTHER;
}

static void on_operated(enum store_result result, const struct operate_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    if (!answer) {
        return;
    }
    w->person = person_result_of(answer->result);
    if (answer->result == OPERATE_DONE) {
        copy_span(span_of(resolver_what_name(answer->what)), w->what, sizeof(w->what));
    } else if (span_equal(answer->how, span_of("removed")) ||
               span_equal(answer->how, span_of("discarded"))) {
        copy_span(answer->how, w->what, sizeof(w->what));
        w->person = PERSON_DONE; /* as the API answers a removal that was done before */
    }
}

static enum person_result operate(struct sync_store *s, enum resolver_operation operation,
                                  const char *ws, const char *id, const char *new_id,
                                  char *ret_what)
{
    struct waiting w = {0};
    const struct settings settings = {0}; /* no kinds: flags say what an entry's is */
    const struct operate_request request = {
        .workspace = span_of(ws),
        .id = span_of(id),
        .operation = operation,
        .new_id = span_of(new_id),
        .settings = &settings,
    };

    store_operate(s->store, &request, on_operated, &w);
    run_until(s, &w, "operate");
    if (ret_what) {
        memcpy(ret_what, w.what, sizeof(w.what));
    }
    return w.person;
}

enum person_result sync_retry(struct sync_store *s, const char *ws, const char *id,
                              const char *new_id, char *ret_what)
{
    return operate(s, RESOLVER_RETRY, ws, id, new_id, ret_what);
}

enum person_result sync_remove(struct sync_store *s, const char *ws, const char *id, char *ret_what)
{
    return operate(s, RESOLVER_REMOVE, ws, id, "removal", ret_what);
}

static void on_walk(enum store_result result, const struct walk_answer *answer, void *arg)
{
    struct sync_walking *walking = arg;

    walking->is_done = true;
    walking->result = result;
    if (answer) {
        walking->answer = *answer;
    }
}

void sync_walk_begin(struct sync_store *s, enum walk_kind kind, const char *ws, uint32_t step,
                     struct sync_walking *walking)
{
    const struct walk_request request = {
        .kind = kind,
        .workspace = span_of(ws),
        .reason = span_of("why"),
        .max_per_step = step,
    };

    *walking = (struct sync_walking){0};
    store_walk(s->store, &request, on_walk, walking);
}

/* Two answers on another connection: what was asked for has been done by the server then. */
void sync_walk_on(struct sync_store *walker, struct sync_store *other)
{
    uv_run(walker->loop, UV_RUN_NOWAIT);
    uv_run(walker->loop, UV_RUN_NOWAIT);
    sync_raw(other, "PING");
    sync_raw(other, "PING");
}

void sync_walk_end(struct sync_store *s, struct sync_walking *walking)
{
    while (!walking->is_done) {
        uv_run(s->loop, UV_RUN_ONCE);
    }
    s->result = walking->result;
    if (walking->result != STORE_OK && !s->is_lossy) {
        die("walk", walking->result);
    }
}

uint64_t sync_walk(struct sync_store *s, enum walk_kind kind, const char *ws, uint32_t step)
{
    struct sync_walking walking;

    sync_walk_begin(s, kind, ws, step, &walking);
    sync_walk_end(s, &walking);
    return walking.answer.count;
}

void sync_pause(struct sync_store *s, const char *ws, bool is_paused)
{
    struct waiting w = {0};

    store_pause(s->store, span_of(ws), is_paused, on_flag, &w);
    run_until(s, &w, "pause");
}

static char state_text[32];

static void on_get(enum store_result result, const struct get_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    snprintf(state_text, sizeof(state_text), "none");
    if (answer && answer->entry) {
        snprintf(state_text, sizeof(state_text), "%s", entry_status_name(answer->entry->status));
    } else if (answer && answer->tombstone) {
        copy_span(answer->tombstone->how, state_text, sizeof(state_text));
    }
}

const char *sync_state(struct sync_store *s, const char *ws, const char *id)
{
    struct waiting w = {0};

    store_get(s->store, span_of(ws), span_of(id), on_get, &w);
    run_until(s, &w, "get");
    return state_text;
}

static void on_held(enum store_result result, const struct held_session *held, size_t count,
                    void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    w->count = count;
    for (size_t i = 0; i < count && i < SYNC_CLAIMS_MAX; i++) {
        struct taken *item = &w->list.items[w->list.count++];

        copy_span(held[i].workspace, item->workspace, sizeof(item->workspace));
        copy_span(held[i].session, item->session, sizeof(item->session));
        copy_span(held[i].token, item->token.text, sizeof(item->token.text));
    }
}

static void ask_held(struct sync_store *s, const char *ws_of_partition, const char *prefix,
                     struct waiting *w)
{
    store_held(s->store, partition_of(ws_of_partition, strlen(ws_of_partition)), span_of(prefix),
               on_held, w);
    run_until(s, w, "held");
}

struct taken_list sync_held_list(struct sync_store *s, const char *ws_of_partition,
                                 const char *prefix)
{
    struct waiting w = {0};

    ask_held(s, ws_of_partition, prefix, &w);
    return w.list;
}

size_t sync_held(struct sync_store *s, const char *ws_of_partition, const char *prefix)
{
    struct waiting w = {0};

    ask_held(s, ws_of_partition, prefix, &w);
    return w.count;
}

void sync_recover_all(struct sync_store *s, const char *ws_of_partition)
{
    const struct taken_list held = sync_held_list(s, ws_of_partition, "");

    for (size_t i = 0; i < held.count; i++) {
        const struct taken *item = &held.items[i];

        sync_recover(s, item->workspace, item->session, item->token.text);
    }
}

static void on_audited(enum store_result result, const struct audit_answer *answer, void *arg)
{
    struct waiting *w = arg;

    w->is_done = true;
    w->result = result;
    if (answer) {
        w->audited = *answer;
    }
}

uint32_t sync_audit(struct sync_store *s, const char *ws_of_partition)
{
    const uint32_t p = partition_of(ws_of_partition, strlen(ws_of_partition));
    uint32_t mended = 0;
    int64_t next = 0;

    do {
        struct waiting w = {0};

        store_audit(s->store, p, next, 16, on_audited, &w);
        run_until(s, &w, "audit");
        mended += w.audited.mended;
        next = w.audited.next;
    } while (next > 0);
    return mended;
}

static char raw_text[4096];

const char *sync_script(struct sync_store *s, const char *script)
{
    redisReply *reply = redisCommand(s->raw, "EVAL %s 0", script);

    snprintf(raw_text, sizeof(raw_text), "%s", reply && reply->str ? reply->str : "");
    freeReplyObject(reply);
    return raw_text;
}

const char *sync_raw(struct sync_store *s, const char *format, ...)
{
    char line[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    /* Words parted by blanks: test keys hold none. */
    const char *argv[64];
    int argc = 0;

    for (char *save = NULL, *word = strtok_r(line, " ", &save); word && argc < 64;
         word = strtok_r(NULL, " ", &save)) {
        argv[argc++] = word;
    }
    redisReply *reply = redisCommandArgv(s->raw, argc, argv, NULL);

    raw_text[0] = '\0';
    if (!reply) {
        abort();
    }
    if (reply->type == REDIS_REPLY_INTEGER) {
        snprintf(raw_text, sizeof(raw_text), "%lld", reply->integer);
    } else if (reply->str) {
        snprintf(raw_text, sizeof(raw_text), "%s", reply->str);
    }
    freeReplyObject(reply);
    return raw_text;
}
