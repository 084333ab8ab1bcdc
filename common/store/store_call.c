/* Puts one script call together and times it: arguments, keys, the pending record. Knows no
 * script's meaning. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/store/store_internal.h"

static char *room(struct call *call, size_t need)
{
    if (call->has_overflown || sizeof(call->text) - call->used < need) {
        call->has_overflown = true;
        return NULL;
    }
    return call->text + call->used;
}

void call_span(struct call *call, struct span bytes)
{
    if (call->argc >= CALL_ARGS_MAX) {
        call->has_overflown = true;
        return;
    }
    call->argv[call->argc++] = bytes;
}

void call_str(struct call *call, const char *str)
{
    call_span(call, span_of(str));
}

void call_number(struct call *call, int64_t number)
{
    char *at = room(call, 24);

    if (!at) {
        return;
    }
    int len = snprintf(at, 24, "%" PRId64, number);

    call->used += (size_t)len + 1;
    call_span(call, (struct span){at, (size_t)len});
}

void call_encoded(struct call *call, struct span raw)
{
    size_t need = raw.len * 3 + 1;
    char *at = room(call, need);

    if (!at) {
        return;
    }
    int64_t len = percent_encode(raw.ptr, raw.len, at, need);

    if (len < 0) {
        call->has_overflown = true;
        return;
    }
    call->used += (size_t)len + 1;
    call_span(call, (struct span){at, (size_t)len});
}

void call_init(struct call *call, struct store *store, enum script_id script, uint32_t partition)
{
    call->store = store;
    call->script = script;
    call->argc = 0;
    call->used = 0;
    call->key = (struct span){0};
    call->is_durable = false;
    call->has_overflown = false;
    call_number(call, partition);
    call_number(call, store->events_max);
}

void call_key(struct call *call, const char *what, uint32_t partition, struct span workspace,
              struct span rest)
{
    size_t need = strlen(what) + 16 + workspace.len * 3 + rest.len * 3;
    char *start = room(call, need);
    int64_t len;

    if (!start) {
        return;
    }
    len = snprintf(start, need, "%s:{%u}", what, partition);
    const struct span parts[] = {workspace, rest};

    for (size_t i = 0; i < 2 && parts[i].len > 0; i++) {
        start[len++] = ':';
        int64_t more = percent_encode(parts[i].ptr, parts[i].len, start + len, need - (size_t)len);

        if (more < 0) {
            call->has_overflown = true;
            return;
        }
        len += more;
    }
    call->used += (size_t)len + 1;
    call->key = (struct span){start, (size_t)len};
}

static enum label_store_result label_of(enum store_result result)
{
    switch (result) {
    case STORE_OK:
        return LABEL_STORE_RESULT_OK;
    case STORE_FULL:
    case STORE_OOM:
    case STORE_READONLY:
    case STORE_MISCONF:
    case STORE_NOAUTH:
    case STORE_NOT_DURABLE:
        return LABEL_STORE_RESULT_REFUSED;
    case STORE_AWAY:
    case STORE_DISTRUSTED:
    case STORE_CUT:
    case STORE_LOADING:
    case STORE_BUSY:
        return LABEL_STORE_RESULT_UNAVAILABLE;
    case STORE_TIMEOUT:
        return LABEL_STORE_RESULT_TIMEOUT;
    case STORE_ERROR:
    case STORE_PROTOCOL:
    case STORE_RESULT_COUNT:
        break;
    }
    return LABEL_STORE_RESULT_ERROR;
}

static void count(const struct pending *pending, enum store_result result)
{
    struct metrics *metrics = pending->store->metrics;

    metrics_add_store_request(metrics, pending->script, label_of(result), 1);
    metrics_observe_ns(metrics, METRIC_store_request_duration_seconds, 0,
                       clock_mono_ns() - pending->sent_ns);
}

static void on_reply(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct pending *pending = arg;

    count(pending, result);
    pending->read(pending, result, reply);
    free(pending);
}

/* A call that could not be put together (out of memory, a name beyond all limits) fails like one
 * that found no room, and as late: callbacks never run before the call returned. */
struct failing {
    uv_timer_t timer;
    struct pending *pending;
};

static void on_failing_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_failing(uv_timer_t *timer)
{
    struct failing *failing = timer->data;
    struct pending *pending = failing->pending;

    uv_close((uv_handle_t *)timer, on_failing_closed);
    on_reply(STORE_FULL, NULL, pending);
}

static void fail_later(struct pending *pending)
{
    struct failing *failing = calloc(1, sizeof(*failing));

    if (!failing) {
        abort(); /* a small fixed object: restart and recovery are the tested path (style, Errors)
                  */
    }
    failing->pending = pending;
    failing->timer.data = failing;
    uv_timer_init(pending->store->loop, &failing->timer);
    uv_timer_start(&failing->timer, on_failing, 0, 0);
}

void call_send_args(struct store *store, enum script_id script, struct span key, size_t argc,
                    const struct span *argv, bool is_durable, bool has_overflown,
                    pending_reader *read, void (*cb)(void), void *arg)
{
    struct pending *pending = malloc(sizeof(*pending));
    uint32_t replicas = 0;

    if (!pending) {
        abort();
    }
    *pending = (struct pending){
        .store = store,
        .script = script,
        .sent_ns = clock_mono_ns(),
        .read = read,
        .cb = cb,
        .arg = arg,
    };
    if (has_overflown) {
        fail_later(pending);
        return;
    }
    if (is_durable && store->durability.level == DURABILITY_REPLICAS) {
        replicas = store->durability.replicas;
    }
    store_conn_eval(store_pick(store), &store_scripts[script], key, argc, argv, replicas, on_reply,
                    pending);
}

void call_send(struct call *call, pending_reader *read, void (*cb)(void), void *arg)
{
    call_send_args(call->store, call->script, call->key, call->argc, call->argv, call->is_durable,
                   call->has_overflown, read, cb, arg);
}
