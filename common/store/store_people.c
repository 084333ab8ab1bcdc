/* What people look at: get, list, counts. */
#include <jansson.h>
#include <stdlib.h>

#include "common/store/store_internal.h"

#define LIST_PAGE_MAX 500

static void call_entry(struct call *call, struct store *store, enum script_id script,
                       struct span workspace, struct span id)
{
    const uint32_t p = partition_of(workspace.ptr, workspace.len);

    call_init(call, store, script, p);
    call_key(call, "outboxe", p, workspace, id);
    call_encoded(call, workspace);
    call_encoded(call, id);
}

static struct span member(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);

    return json_is_string(value)
               ? (struct span){json_string_value(value), json_string_length(value)}
               : (struct span){"", 0};
}

/* Scripts write it as 1733000000000 or 1.733e+12; 0: no time. */
static int64_t member_time(const json_t *root, const char *name)
{
    const double value = json_number_value(json_object_get(root, name));

    return value > 0 && value < 1e15 ? reply_time_ms((int64_t)value) : 0;
}

static void read_get(struct pending *pending, enum store_result result,
                     const struct redisReply *reply)
{
    store_get_cb *cb = (store_get_cb *)pending->cb;
    struct get_answer answer = {0};
    struct tombstone tombstone;
    struct entry entry;
    struct entry_text text;

    if (result == STORE_OK && !reply_is_array(reply, 6)) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    struct span json = reply_span(reply->element[4]);
    json_t *root = json.len > 0 ? json_loadb(json.ptr, json.len, JSON_ALLOW_NUL, NULL) : NULL;

    answer.now_ms = reply_number(reply->element[0]);
    answer.in_flight = reply_span(reply->element[1]);
    answer.in_flight_since_ms = reply_number(reply->element[2]);
    /* The caller knows the ID; the spans of `entry.id` stay empty here on purpose. */
    if (reply_entry(reply->element[3], (struct span){0}, &text, &entry) == 0) {
        entry.failed_deps = reply_span(reply->element[5]);
        answer.entry = &entry;
    } else if (root) {
        tombstone = (struct tombstone){
            .how = member(root, "how"),
            .session = member(root, "session"),
            .client_message_id = member(root, "clientMessageID"),
            .kind = member(root, "kind"),
            .replaced_by = member(root, "replacedBy"),
            .result = member(root, "result"),
            .accepted_at_ms = member_time(root, "acceptedAt"),
            .ended_at_ms = member_time(root, "endedAt"),
        };
        if (!reply_is_json(tombstone.result)) {
            tombstone.result = (struct span){"", 0};
        }
        answer.tombstone = &tombstone;
    }
    cb(STORE_OK, &answer, pending->arg);
    json_decref(root);
}

void store_get(struct store *store, struct span workspace, struct span id, store_get_cb *cb,
               void *arg)
{
    struct call call;

    call_entry(&call, store, SCRIPT_GET, workspace, id);
    call_number(&call, store->lock_ttl_ms);
    call_send(&call, read_get, (void (*)(void))cb, arg);
}

/* Entries and their rooms in newly allocated memory; the number read, or -1 when out of memory. */
static int64_t read_entries(const struct redisReply *rows, struct entry **ret_entries,
                            struct entry_text **ret_texts)
{
    struct entry *entries = calloc(rows->elements + 1, sizeof(*entries));
    struct entry_text *texts = calloc(rows->elements + 1, sizeof(*texts));
    int64_t count = 0;

    *ret_entries = entries;
    *ret_texts = texts;
    if (!entries || !texts) {
        return -1;
    }
    for (size_t i = 0; i < rows->elements; i++) {
        const struct redisReply *row = rows->element[i];

        if (reply_is_array(row, 3) && reply_entry(row->element[1], reply_span(row->element[0]),
                                                  &texts[count], &entries[count]) == 0) {
            entries[count++].failed_deps = reply_span(row->element[2]);
        }
    }
    return count;
}

static void read_list(struct pending *pending, enum store_result result,
                      const struct redisReply *reply)
{
    store_list_cb *cb = (store_list_cb *)pending->cb;
    struct list_answer answer = {0};
    struct entry *entries;
    struct entry_text *texts;

    if (result == STORE_OK &&
        (!reply_is_array(reply, 6) || !reply_is_array(reply->element[5], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    int64_t count = read_entries(reply->element[5], &entries, &texts);

    if (count < 0) {
        cb(STORE_FULL, NULL, pending->arg);
    } else {
        answer.entries = entries;
        answer.count = (size_t)count;
        answer.walked = (uint32_t)reply_number(reply->element[4]);
        answer.has_more = reply_number(reply->element[1]) != 0;
        answer.in_flight = reply_span(reply->element[2]);
        answer.in_flight_since_ms = reply_number(reply->element[3]);
        answer.now_ms = reply_number(reply->element[0]);
        cb(STORE_OK, &answer, pending->arg);
    }
    free(entries);
    free(texts);
}

void store_list(struct store *store, struct span workspace, struct span session, uint32_t offset,
                uint32_t limit, store_list_cb *cb, void *arg)
{
    const uint32_t p = partition_of(workspace.ptr, workspace.len);
    struct call call;

    call_init(&call, store, SCRIPT_LIST, p);
    call_key(&call, "outboxq", p, workspace, session);
    call_encoded(&call, workspace);
    call_encoded(&call, session);
    call_number(&call, offset);
    call_number(&call, limit < LIST_PAGE_MAX ? limit : LIST_PAGE_MAX);
    call_number(&call, store->lock_ttl_ms);
    call_send(&call, read_list, (void (*)(void))cb, arg);
}

static void read_counts(struct pending *pending, enum store_result result,
                        const struct redisReply *reply)
{
    store_counts_cb *cb = (store_counts_cb *)pending->cb;
    struct counts_answer answer = {0};

    if (result == STORE_OK &&
        (!reply_is_array(reply, 4) || !reply_is_array(reply->element[3], 0))) {
        result = STORE_PROTOCOL;
    }
    if (result != STORE_OK) {
        cb(result, NULL, pending->arg);
        return;
    }
    int64_t oldest = reply_number(reply->element[1]);

    answer.now_ms = reply_number(reply->element[0]);
    answer.oldest_open_age_ms = oldest > 0 && oldest < answer.now_ms ? answer.now_ms - oldest : 0;
    answer.locked = (uint64_t)reply_number(reply->element[2]);
    reply_counts(reply->element[3], answer.by_status);
    cb(STORE_OK, &answer, pending->arg);
}

void store_counts(struct store *store, uint32_t partition, store_counts_cb *cb, void *arg)
{
    struct call call;

    call_init(&call, store, SCRIPT_COUNTS, partition);
    call_key(&call, "outboxstat", partition, (struct span){0}, (struct span){0});
    call_send(&call, read_counts, (void (*)(void))cb, arg);
}
