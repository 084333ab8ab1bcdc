/* What the server is (INFO, CONFIG GET), whether that is durable enough, the layout it was written
 * with, and the generations' counters. What writes is a script, so that it may also in a full
 * store. Contract §2, §8. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/store/store_internal.h"

#define LAYOUT_VERSION 1
#define MIN_MAJOR      7
#define BEAT_TTL_MS    "86400000" /* a day: long after its generation is known to be dead */
#define BEAT_KEY_MAX   128

/* Several commands in one pipeline, one answer: the first trouble among them decides. */
struct request {
    void (*cb)(void);
    void *arg;
    enum store_result result; /* the first that was not STORE_OK */
    int due;
    struct server_facts facts;
    bool flag;
};

static struct request *request_create(void (*cb)(void), void *arg, int due)
{
    struct request *request = calloc(1, sizeof(*request));

    if (!request) {
        abort(); /* a small fixed object: restart is the tested path (style, Errors) */
    }
    request->cb = cb;
    request->arg = arg;
    request->due = due;
    return request;
}

/* Whether this was the last answer; *result then holds the verdict over all. */
static bool is_last(struct request *request, enum store_result *result)
{
    if (request->result == STORE_OK) {
        request->result = *result;
    }
    *result = request->result;
    return --request->due == 0;
}

/* ---- facts
 * --------------------------------------------------------------------------------------------------
 */

static void copy_text(char *to, size_t room, struct span text)
{
    size_t len = text.len < room ? text.len : room - 1;

    memcpy(to, text.ptr, len);
    to[len] = '\0';
}

static uint64_t to_number(struct span text)
{
    char copy[24];

    copy_text(copy, sizeof(copy), text);
    return strtoull(copy, NULL, 10);
}

static void read_info_field(struct span name, struct span value, struct server_facts *facts)
{
    if (span_equal(name, span_of("server_name"))) {
        copy_text(facts->name, sizeof(facts->name), value);
    } else if (span_equal(name, span_of("valkey_version")) ||
               (span_equal(name, span_of("redis_version")) && facts->version[0] == '\0')) {
        /* Valkey states a Redis version too, for old clients, and before its own. */
        copy_text(facts->version, sizeof(facts->version), value);
    } else if (span_equal(name, span_of("aof_enabled"))) {
        facts->aof_enabled = to_number(value) == 1;
    } else if (span_equal(name, span_of("loading"))) {
        facts->is_loading = to_number(value) == 1;
    } else if (span_equal(name, span_of("role"))) {
        facts->is_replica = !span_equal(value, span_of("master"));
    } else if (span_equal(name, span_of("aof_last_write_status"))) {
        facts->aof_last_write_ok = span_equal(value, span_of("ok"));
    } else if (span_equal(name, span_of("aof_last_bgrewrite_status"))) {
        facts->aof_last_rewrite_ok = span_equal(value, span_of("ok"));
    } else if (span_equal(name, span_of("server_time_usec"))) {
        facts->now_ms = (int64_t)(to_number(value) / 1000);
    } else if (span_equal(name, span_of("used_memory"))) {
        facts->used_memory_bytes = to_number(value);
    } else if (span_equal(name, span_of("maxmemory"))) {
        facts->max_memory_bytes = to_number(value);
    } else if (span_equal(name, span_of("process_id"))) {
        facts->process_id = to_number(value);
    } else if (span_equal(name, span_of("connected_slaves"))) {
        facts->connected_replicas = (uint32_t)to_number(value);
    }
}

static void read_info(struct span text, struct server_facts *facts)
{
    const char *at = text.ptr, *end = text.ptr + text.len;

    facts->aof_last_write_ok = true; /* not stated while AOF is off */
    facts->aof_last_rewrite_ok = true;
    copy_text(facts->name, sizeof(facts->name),
              span_of("redis")); /* Redis does not state its name */
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = stop ? stop : end;
        const char *colon = memchr(at, ':', (size_t)(line_end - at));

        if (colon) {
            const char *value_end =
                line_end > colon + 1 && line_end[-1] == '\r' ? line_end - 1 : line_end;

            read_info_field((struct span){at, (size_t)(colon - at)},
                            (struct span){colon + 1, (size_t)(value_end - colon - 1)}, facts);
        }
        at = line_end + 1;
    }
}

static void finish_facts(struct request *request, enum store_result result)
{
    store_facts_cb *cb = (store_facts_cb *)request->cb;

    cb(result, result == STORE_OK ? &request->facts : NULL, request->arg);
    free(request);
}

static void on_info(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct request *request = arg;

    if (result == STORE_OK) {
        struct span text = reply_span(reply);

        if (text.len > 0) {
            read_info(text, &request->facts);
        } else {
            result = STORE_PROTOCOL;
        }
    }
    if (is_last(request, &result)) {
        finish_facts(request, result);
    }
}

static void on_config(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct request *request = arg;
    struct server_facts *facts = &request->facts;

    /* Hosted servers rename or forbid CONFIG; to us that is a missing permission. */
    result = result == STORE_ERROR ? STORE_NOAUTH : result;
    for (size_t i = 0; result == STORE_OK && reply_is_array(reply, 0) && i + 1 < reply->elements;
         i += 2) {
        struct span name = reply_span(reply->element[i]);
        struct span value = reply_span(reply->element[i + 1]);

        if (span_equal(name, span_of("appendfsync"))) {
            copy_text(facts->appendfsync, sizeof(facts->appendfsync), value);
        } else if (span_equal(name, span_of("maxmemory-policy"))) {
            copy_text(facts->maxmemory_policy, sizeof(facts->maxmemory_policy), value);
        }
    }
    if (is_last(request, &result)) {
        finish_facts(request, result);
    }
}

void store_facts(struct store *store, store_facts_cb *cb, void *arg)
{
    const struct span info[] = {{"INFO", 4}};
    const struct span config[] = {
        {"CONFIG", 6}, {"GET", 3}, {"appendfsync", 11}, {"maxmemory-policy", 16}};
    struct request *request = request_create((void (*)(void))cb, arg, 2);
    struct store_conn *conn = store_pick(store);

    store_conn_command(conn, 1, info, on_info, request);
    store_conn_command(conn, 4, config, on_config, request);
}

const char *store_version_refusal(const char *version)
{
    unsigned major = 0;
    const char *p = version;

    for (; *p >= '0' && *p <= '9' && major < 1000; p++) {
        major = major * 10 + (unsigned)(*p - '0');
    }
    if (p == version || *p != '.' || major < MIN_MAJOR) {
        return "version 7.0 or newer is needed. Mend it: install valkey-server 8 (or redis-server "
               "7)";
    }
    return NULL;
}

const char *store_facts_refusal(const struct server_facts *facts, struct durability durability)
{
    if (facts->is_replica) {
        return "it is a replica and refuses writes. Mend it: `valkey-cli REPLICAOF NO ONE`, or "
               "point store.url at "
               "its primary";
    }
    if (durability.level == DURABILITY_MEMORY) {
        return NULL;
    }
    if (!facts->aof_enabled) {
        return "appendonly is off, so a restart of the store would lose accepted messages. Mend "
               "it: "
               "`valkey-cli CONFIG SET appendonly yes` and `appendonly yes` in its configuration "
               "file; "
               "or set `durability: memory` to accept the loss";
    }
    if (strcmp(facts->maxmemory_policy, "noeviction") != 0) {
        return "maxmemory-policy is not noeviction, so a full store would throw accepted messages "
               "away. Mend it: "
               "`valkey-cli CONFIG SET maxmemory-policy noeviction` and `maxmemory-policy "
               "noeviction` in its "
               "configuration file; or set `durability: memory` to accept the loss";
    }
    if (durability.level != DURABILITY_REPLICAS && strcmp(facts->appendfsync, "no") == 0) {
        return "appendfsync is `no`, so the system decides when writes reach the disk. Mend it: "
               "`valkey-cli CONFIG SET appendfsync always` and `appendfsync always` in its "
               "configuration file; "
               "or set `durability: memory` to accept the loss";
    }
    if (durability.level == DURABILITY_FSYNC && strcmp(facts->appendfsync, "always") != 0) {
        return "appendfsync is not `always`, as `durability: fsync` demands. Mend it: "
               "`valkey-cli CONFIG SET appendfsync always` and `appendfsync always` in its "
               "configuration file; "
               "or set `durability: everysec` to accept the loss of the last second";
    }
    if (durability.level == DURABILITY_REPLICAS &&
        facts->connected_replicas < durability.replicas) {
        return "fewer replicas are connected than `durability: replicas` demands. Mend it: "
               "`valkey-cli -h REPLICA REPLICAOF HOST PORT` for each one missing; or demand fewer";
    }
    return NULL;
}

/* ---- layout
 * -------------------------------------------------------------------------------------------------
 */

static void finish_flag(struct request *request, enum store_result result)
{
    store_flag_cb *cb = (store_flag_cb *)request->cb;

    cb(result, result == STORE_OK && request->flag, request->arg);
    free(request);
}

static void on_meta(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct request *request = arg;

    if (result == STORE_OK && !reply_is_array(reply, 2)) {
        result = STORE_PROTOCOL;
    }
    if (result == STORE_OK) {
        request->flag = reply_number(reply->element[0]) == LAYOUT_VERSION &&
                        reply_number(reply->element[1]) == PARTITION_COUNT;
    }
    finish_flag(request, result);
}

static void on_beat(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct request *request = arg;

    (void)reply; /* the new count: only readers of other generations compare it */
    request->flag = true;
    finish_flag(request, result);
}

void store_check_meta(struct store *store, store_flag_cb *cb, void *arg)
{
    char layout[16], partitions[16];
    const int layout_len = snprintf(layout, sizeof(layout), "%d", LAYOUT_VERSION);
    const int partitions_len = snprintf(partitions, sizeof(partitions), "%d", PARTITION_COUNT);
    const struct span argv[] = {{layout, (size_t)layout_len}, {partitions, (size_t)partitions_len}};

    store_conn_eval(store_pick(store), &store_scripts[SCRIPT_META], span_of("outboxmeta"), 2, argv,
                    0, on_meta, request_create((void (*)(void))cb, arg, 1));
}

/* ---- counters of generations
 * -------------------------------------------------------------------------------- */

struct beat_key {
    char text[BEAT_KEY_MAX];
};

/* outboxnode:node:generation, the generation in hex as in lock tokens. */
static struct beat_key beat_key_of(const char *node, uint64_t generation)
{
    struct beat_key key;

    (void)snprintf(key.text, sizeof(key.text), "outboxnode:%s:%" PRIx64, node,
                   generation); /* node: at most 64 */
    return key;
}

void store_beat(struct store *store, const char *node, uint64_t generation, store_flag_cb *cb,
                void *arg)
{
    const struct beat_key key = beat_key_of(node, generation);
    const struct span keep[] = {span_of(BEAT_TTL_MS)};

    store_conn_eval(store_pick(store), &store_scripts[SCRIPT_BEAT], span_of(key.text), 1, keep, 0,
                    on_beat, request_create((void (*)(void))cb, arg, 1));
}

static void on_beat_read(enum store_result result, const struct redisReply *reply, void *arg)
{
    struct request *request = arg;
    store_beat_cb *cb = (store_beat_cb *)request->cb;

    if (result != STORE_OK) {
        cb(result, false, 0, request->arg);
    } else {
        cb(STORE_OK, reply->type == REDIS_REPLY_STRING, reply_number(reply), request->arg);
    }
    free(request);
}

void store_read_beat(struct store *store, const char *node, uint64_t generation, store_beat_cb *cb,
                     void *arg)
{
    const struct beat_key key = beat_key_of(node, generation);
    const struct span get[] = {{"GET", 3}, span_of(key.text)};

    store_conn_command(store_pick(store), 2, get, on_beat_read,
                       request_create((void (*)(void))cb, arg, 1));
}
