/* Arguments are kept as places in one growing buffer: nobody knows beforehand how many there are or
 * how long. */
#include "common/store/store_accept_many.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/store/store_internal.h"

#define BYTES_MAX    (256U << 20) /* the longest message, encoded, and what stands before it */
#define ARGS_LEAD    4            /* partition, events kept, cap, bodies */
#define ARG_BODIES   3            /* where they stand: known when all are there */
#define ARGS_PLAIN   10           /* of a message that waits for nobody */
#define ARGS_AT_ONCE 256

struct place {
    size_t at, len;
};

struct accept_many {
    struct store *store;
    struct buf bytes, bodies;
    struct place *args; /* owned; in `bytes` */
    size_t argc, cap, count;
    struct place key;
    uint32_t partition;
};

static void put(struct accept_many *many, struct place *place, struct span span)
{
    *place = (struct place){many->bytes.len, span.len};
    (void)buf_append(&many->bytes, span.ptr ? span.ptr : "", span.len);
}

static void put_arg(struct accept_many *many, struct span span)
{
    put(many, &many->args[many->argc++], span); /* there is room: reserve() */
}

static void put_number(struct accept_many *many, uint32_t number)
{
    char text[16];
    const int len = snprintf(text, sizeof(text), "%" PRIu32, number);

    put_arg(many, (struct span){text, (size_t)len});
}

/* Names that a request may hold fit; a longer one fails the buffer, and with it the call. */
static struct span encode(struct accept_many *many, struct span raw, char room[CMID_ENC_MAX + 1])
{
    const int64_t len = percent_encode(raw.ptr, raw.len, room, CMID_ENC_MAX + 1);

    if (len < 0) {
        many->bytes.failed = true;
        return (struct span){"", 0};
    }
    return (struct span){room, (size_t)len};
}

static bool reserve(struct accept_many *many, size_t more)
{
    const size_t cap = many->argc + more + ARGS_AT_ONCE;
    struct place *args;

    if (many->argc + more <= many->cap) {
        return true;
    }
    args = realloc(many->args, cap * sizeof(*args));
    if (!args) {
        return false;
    }
    many->args = args;
    many->cap = cap;
    return true;
}

struct accept_many *accept_many_create(struct store *store, uint32_t partition)
{
    struct accept_many *many = calloc(1, sizeof(*many));

    if (!many) {
        return NULL;
    }
    many->store = store;
    many->partition = partition;
    buf_init(&many->bytes, BYTES_MAX);
    buf_init(&many->bodies, BYTES_MAX);
    return many;
}

void accept_many_destroy(struct accept_many **many_ptr)
{
    struct accept_many *many = *many_ptr;

    if (!many) {
        return;
    }
    *many_ptr = NULL;
    buf_done(&many->bytes);
    buf_done(&many->bodies);
    free(many->args);
    free(many);
}

/* ---- putting it together ---- */

static void put_lead(struct accept_many *many, const struct accept_request *first, struct span ws,
                     struct span ses)
{
    char key[32 + 2 * CMID_ENC_MAX];
    const int len = snprintf(key, sizeof(key), "outboxq:{%u}:%.*s:%.*s", many->partition,
                             (int)ws.len, ws.ptr, (int)ses.len, ses.ptr);

    put(many, &many->key, (struct span){key, (size_t)len});
    put_number(many, many->partition);
    put_number(many, many->store->events_max);
    put_number(many, first->session_cap);
    put_arg(many, (struct span){"", 0}); /* ARG_BODIES */
}

static void put_message(struct accept_many *many, const struct accept_request *request)
{
    const struct entry_body *body = request->body;
    char ws_room[CMID_ENC_MAX + 1], ses_room[CMID_ENC_MAX + 1], room[CMID_ENC_MAX + 1];
    const struct span ws = encode(many, request->workspace, ws_room);
    const struct span ses = encode(many, request->session, ses_room);

    if (many->count == 0) {
        put_lead(many, request, ws, ses);
    }
    put_arg(many, ws);
    put_arg(many, ses);
    put_arg(many, request->id);
    put_arg(many, encode(many, body->client_message_id, room));
    put_arg(many, request->digest);
    put_arg(many, body->kind);
    put_arg(many, request->flags);
    put_arg(many, body->user_id);
    const size_t before = many->bodies.len;

    if (entry_body_encode(body, &many->bodies) < 0) {
        many->bodies.failed = true;
    }
    put_number(many, (uint32_t)(many->bodies.len - before));
    put_number(many, body->depends_on_count);
    for (uint32_t i = 0; i < body->depends_on_count; i++) {
        put_arg(many, encode(many, body->depends_on[i], room));
    }
}

/* About: what is encoded is a little longer or shorter. */
static size_t size_of(const struct accept_request *request)
{
    const struct entry_body *body = request->body;

    return body->text.len + body->model.len + body->payload.len;
}

int accept_many_add(struct accept_many *many, const struct accept_request *request)
{
    if (many->count == ACCEPT_MANY_MAX ||
        (many->count > 0 &&
         many->bytes.len + many->bodies.len + size_of(request) > ACCEPT_MANY_BYTES)) {
        return -ENOSPC;
    }
    if (!reserve(many, ARGS_LEAD + ARGS_PLAIN + request->body->depends_on_count)) {
        return -ENOMEM;
    }
    put_message(many, request);
    many->count++;
    return 0;
}

/* ---- the answer ---- */

static bool read_item(const struct redisReply *reply, struct accept_many_item *ret)
{
    *ret = (struct accept_many_item){.result = STORE_OK};
    if (reply->type == REDIS_REPLY_INTEGER) {
        ret->answer.result = ACCEPT_ACCEPTED;
        return true;
    }
    if (!reply_is_array(reply, 4)) {
        return false;
    }
    if (span_equal(reply_span(reply->element[0]), span_of("failed"))) {
        ret->result = STORE_ERROR;
        return true;
    }
    if (accept_result_of(reply_span(reply->element[0]), &ret->answer.result) < 0) {
        return false;
    }
    ret->answer.id = reply_span(reply->element[1]);
    ret->answer.entry_status = reply_span(reply->element[2]);
    ret->answer.accepted_at_ms = reply_number(reply->element[3]);
    return true;
}

static void read_many(struct pending *pending, enum store_result result,
                      const struct redisReply *reply)
{
    store_accept_many_cb *cb = (store_accept_many_cb *)pending->cb;
    struct accept_many_item items[ACCEPT_MANY_MAX];
    size_t count = 0;

    if (result == STORE_OK &&
        (!reply_is_array(reply, 1) || reply->elements > ACCEPT_MANY_MAX + 1)) {
        result = STORE_PROTOCOL;
    }
    while (result == STORE_OK && count + 1 < reply->elements) {
        struct accept_many_item *item = &items[count];

        if (!read_item(reply->element[count + 1], item)) {
            result = STORE_PROTOCOL;
            break;
        }
        item->answer.now_ms = reply_number(reply->element[0]);
        if (item->answer.id.len == 0 && item->answer.result == ACCEPT_ACCEPTED) {
            item->answer.accepted_at_ms = item->answer.now_ms;
        }
        count++;
    }
    cb(result, result == STORE_OK ? items : NULL, result == STORE_OK ? count : 0, pending->arg);
}

void accept_many_send(struct accept_many **many_ptr, store_accept_many_cb *cb, void *arg)
{
    struct accept_many *many = *many_ptr;
    struct span *argv = calloc(many->argc + 1, sizeof(*argv));
    const bool is_whole = argv && !many->bytes.failed && !many->bodies.failed;
    struct span key = {0};

    for (size_t i = 0; is_whole && i < many->argc; i++) {
        argv[i] = (struct span){many->bytes.bytes + many->args[i].at, many->args[i].len};
    }
    if (is_whole) {
        argv[ARG_BODIES] = (struct span){many->bodies.bytes, many->bodies.len};
        key = (struct span){many->bytes.bytes + many->key.at, many->key.len};
    }
    call_send_args(many->store, SCRIPT_ACCEPT_MANY, key, is_whole ? many->argc : 0, argv, true,
                   !is_whole, read_many, (void (*)(void))cb, arg);
    free(argv);
    accept_many_destroy(many_ptr);
}
