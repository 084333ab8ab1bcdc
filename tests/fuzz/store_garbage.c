/* See store_garbage.h. Takes the place of store_pick, store_conn_command and store_conn_eval when
 * it is linked. */
#include "tests/fuzz/store_garbage.h"

#include <uv.h>

#include "tests/fuzz/fuzz.h"

#define DEPTH_MAX 7 /* hiredis refuses what is nested deeper */
#define QUEUE_MAX 64

/* Calls without answer: a callback never runs before its call returned. */
static struct {
    store_reply_cb *cb;
    void *arg;
} asked[QUEUE_MAX];
static size_t asked_count;

/* ---- replies ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

static struct span skip_blanks(struct span text)
{
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    return text;
}

static int hex_of(char c)
{
    const char *digits = "0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* A word with its escapes undone, off the front of *text; the caller frees it. */
static char *take_word(struct span *text, size_t *ret_len)
{
    char *word = malloc(text->len + 1);
    size_t len = 0, at = 0;

    MUST_HOLD(word);
    while (at < text->len && !is_blank(text->ptr[at]) && text->ptr[at] != '[' &&
           text->ptr[at] != ']') {
        const bool is_escape = text->ptr[at] == '%' && at + 2 < text->len &&
                               hex_of(text->ptr[at + 1]) >= 0 && hex_of(text->ptr[at + 2]) >= 0;

        word[len++] = is_escape ? (char)(hex_of(text->ptr[at + 1]) * 16 + hex_of(text->ptr[at + 2]))
                                : text->ptr[at];
        at += is_escape ? 3 : 1;
    }
    word[len] = '\0';
    text->ptr += at;
    text->len -= at;
    *ret_len = len;
    return word;
}

static void free_reply(redisReply *reply)
{
    if (!reply) {
        return;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        free_reply(reply->element[i]);
    }
    free(reply->element);
    free(reply->str);
    free(reply);
}

static redisReply *take_reply(struct span *text, unsigned depth);

static void take_list(struct span *text, unsigned depth, redisReply *list)
{
    size_t room = 0;

    *text = skip_blanks(*text);
    while (text->len > 0 && text->ptr[0] != ']') {
        if (list->elements == room) {
            room = room > 0 ? 2 * room : 8;
            list->element = realloc(list->element, room * sizeof(*list->element));
            MUST_HOLD(list->element);
        }
        list->element[list->elements++] = take_reply(text, depth + 1);
        *text = skip_blanks(*text);
    }
    if (text->len > 0 && text->ptr[0] == ']') {
        text->ptr++;
        text->len--;
    }
}

/* The next reply off the front of *text, which is not empty and begins with no blank. */
static redisReply *take_reply(struct span *text, unsigned depth)
{
    redisReply *reply = calloc(1, sizeof(*reply));
    const char first = text->ptr[0];

    MUST_HOLD(reply);
    if (strchr("[]:~!", first) && first) {
        text->ptr++;
        text->len--;
    }
    reply->type = first == '!' ? REDIS_REPLY_ERROR : REDIS_REPLY_STRING;
    if (first == '~' || first == ']') {
        reply->type = REDIS_REPLY_NIL;
    } else if (first == '[' && depth < DEPTH_MAX) {
        reply->type = REDIS_REPLY_ARRAY;
        take_list(text, depth, reply);
    } else {
        reply->str = take_word(text, &reply->len);
    }
    if (first == ':') {
        reply->type = REDIS_REPLY_INTEGER;
        reply->integer = strtoll(reply->str, NULL, 10);
        free(reply->str);
        reply->str = NULL;
        reply->len = 0;
    }
    return reply;
}

static void answer(struct store_garbage *garbage, store_reply_cb *cb, void *arg)
{
    garbage->rest = skip_blanks(garbage->rest);
    if (garbage->rest.len == 0 || garbage->rest.ptr[0] == '?') {
        garbage->rest.len -= garbage->rest.len > 0;
        garbage->rest.ptr++;
        cb(STORE_CUT, NULL, arg);
        return;
    }
    redisReply *reply = take_reply(&garbage->rest, 0);
    const bool is_error = reply->type == REDIS_REPLY_ERROR;

    cb(is_error ? store_result_from_error(reply->str, reply->len) : STORE_OK, reply, arg);
    free_reply(reply);
}

void store_garbage_init(struct store_garbage *garbage, struct span replies)
{
    *garbage = (struct store_garbage){
        .store = {.dedupe_ttl_ms = 86400000, .lock_ttl_ms = 60000, .events_max = 100},
        .rest = replies,
    };
    asked_count = 0;
}

void store_garbage_run(struct store_garbage *garbage)
{
    while (asked_count > 0) {
        store_reply_cb *cb = asked[0].cb;
        void *arg = asked[0].arg;

        asked_count--;
        memmove(&asked[0], &asked[1], asked_count * sizeof(asked[0]));
        answer(garbage, cb, arg);
    }
}

/* ---- in the place of the connections ---- */

static void ask(store_reply_cb *cb, void *arg)
{
    MUST_HOLD(asked_count < QUEUE_MAX);
    asked[asked_count].cb = cb;
    asked[asked_count++].arg = arg;
}

struct store_conn *store_pick(struct store *store)
{
    (void)store;
    return NULL;
}

void store_conn_command(struct store_conn *conn, size_t argc, const struct span *argv,
                        store_reply_cb *cb, void *arg)
{
    (void)conn;
    (void)argc;
    (void)argv;
    ask(cb, arg);
}

void store_conn_eval(struct store_conn *conn, const struct store_script *script, struct span key,
                     size_t argc, const struct span *argv, uint32_t replicas, store_reply_cb *cb,
                     void *arg)
{
    (void)conn;
    (void)script;
    (void)key;
    (void)argc;
    (void)argv;
    (void)replicas;
    ask(cb, arg);
}
