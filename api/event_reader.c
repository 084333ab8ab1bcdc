/* What one stream sends next. Its own text goes first (pages of the store, heartbeats, a reset);
 * what all readers share is copied out of the ring, never kept per reader. */
#include "api/event_reader.h"

#include <stdlib.h>

#include "api/api.h"
#include "api/event_private.h"
#include "api/event_text.h"
#include "common/access/token_table.h"
#include "common/base/clock.h"
#include "common/shm/metrics.h"

/* ---- create, join, destroy ---- */

static struct span put(char **at, struct span bytes)
{
    char *start = *at;

    if (bytes.len > 0) {
        memcpy(start, bytes.ptr, bytes.len);
    }
    *at += bytes.len;
    return (struct span){start, bytes.len};
}

struct event_reader *event_reader_create(struct event_hub *hub,
                                         const struct event_reader_options *options)
{
    struct event_reader *reader = calloc(1, sizeof(*reader));
    char *names =
        malloc(options->workspace.len + options->session.len + options->last_event_id.len + 1);

    if (!reader || !names) {
        free(reader);
        free(names);
        return NULL;
    }
    reader->hub = hub;
    reader->options = *options;
    reader->names = names;
    reader->options.workspace = put(&names, options->workspace);
    reader->options.session = put(&names, options->session);
    reader->options.last_event_id = put(&names, options->last_event_id);
    reader->partition = partition_of(options->workspace.ptr, options->workspace.len);
    buf_init(&reader->text, EVENT_TEXT_MAX);
    hub->reader_count++;
    metrics_add(hub->api->metrics, METRIC_event_readers, 0, 1);
    hub_reader_spoke(hub, reader);
    return reader;
}

void event_reader_destroy(struct event_reader **reader_ptr)
{
    struct event_reader *reader = *reader_ptr;

    *reader_ptr = NULL;
    if (!reader) {
        return;
    }
    if (!reader->is_gone) {
        reader->is_gone = true;
        metrics_sub(reader->hub->api->metrics, METRIC_event_readers, 0, 1);
        hub_reader_gone(reader->hub, reader);
    }
    if (reader->is_asking) {
        return; /* the page's callback frees it */
    }
    buf_done(&reader->text);
    free(reader->at);
    free(reader->names);
    free(reader);
}

void event_reader_ends(const struct event_reader *reader, bool is_cut)
{
    if (is_cut && !reader->hub->is_draining) {
        metrics_add(reader->hub->api->metrics, METRIC_event_readers_cut_total, 0, 1);
        metrics_add(reader->hub->api->metrics, METRIC_http_limited_total,
                    LABEL_HTTP_LIMIT_EVENT_READER, 1);
    }
}

void event_reader_join(struct event_reader *reader)
{
    struct event_hub *hub = reader->hub;

    if (hub->is_draining) {
        reader->options.joined(STORE_AWAY, reader->options.arg);
    } else if (hub_wants_reader(hub)) {
        reader_hub_runs(reader);
    } else {
        reader->next = hub->joining;
        if (reader->next) {
            reader->next->previous = reader;
        }
        hub->joining = reader;
    }
}

/* Where it wants to go on: 0, -EINVAL or -ENOMEM. */
static int read_position(struct event_reader *reader)
{
    const struct span id = reader->options.last_event_id;

    reader->at = calloc(reads_all(reader) ? PARTITION_COUNT : 1, sizeof(*reader->at));
    if (!reader->at) {
        abort(); /* a small fixed object */
    }
    return reads_all(reader) ? event_position_read_all(id, reader->at)
                             : event_position_read(id, reader->partition, reader->at);
}

static void become_live(struct event_reader *reader)
{
    reader->mode = READER_LIVE;
    reader->cursor = 0;
    reader->sent = 0;
    if (reader->is_ahead) {
        reader->is_ahead = false;
        reader->hub->ahead_count--;
    }
    free(reader->at);
    reader->at = NULL;
}

void reader_hub_runs(struct event_reader *reader)
{
    reader->next = reader->previous = NULL;
    if (channels_join(reader->hub, reader) < 0) {
        reader->options.joined(STORE_FULL, reader->options.arg);
        return;
    }
    if (reader->options.last_event_id.len == 0) {
        become_live(reader);
        reader->is_heartbeat_due = true; /* so that it has a position before the first event */
    } else if (read_position(reader) < 0) {
        reader_reset(reader, "invalid");
    } else {
        reader->mode = READER_STORE;
    }
    reader->options.joined(STORE_OK, reader->options.arg);
}

/* ---- what others ask and tell ---- */

struct stream_id *reader_at(struct event_reader *reader, uint32_t partition)
{
    return &reader->at[reads_all(reader) ? partition : 0];
}

static bool may_see(const struct event_reader *reader, struct span workspace)
{
    const struct access_token *caller = reader->options.caller;

    return !caller || access_token_may_touch(caller, workspace);
}

bool reader_wants(const struct event_reader *reader, struct span workspace, struct span session)
{
    const struct event_reader_options *options = &reader->options;

    return (options->workspace.len == 0 || span_equal(options->workspace, workspace)) &&
           (options->session.len == 0 || span_equal(options->session, session)) &&
           may_see(reader, workspace);
}

void reader_wake(struct event_reader *reader)
{
    if (reader->is_waiting) {
        reader->is_waiting = false;
        reader->options.wake(reader->options.arg);
    }
}

void reader_cut(struct event_reader *reader)
{
    if (!reader->is_cut) {
        reader->is_cut = true;
        reader->options.cut(reader->options.arg);
    }
}

bool reader_has_fallen_off(const struct event_reader *reader)
{
    return reader->mode >= READER_SCAN && reader->cursor > 0 &&
           reader->cursor < reader->hub->ring.first;
}

/* The position up to which all was told, as text. */
static struct span position_of(const struct event_reader *reader, const struct stream_id *at,
                               char text[EVENT_POSITION_TEXT_MAX])
{
    const size_t len = reads_all(reader) ? event_position_write_all(at, text)
                                         : event_position_write(reader->partition, *at, text);

    return (struct span){text, len};
}

static struct span position_of_hub(const struct event_reader *reader,
                                   char text[EVENT_POSITION_TEXT_MAX])
{
    const struct stream_id *last = reader->hub->last;

    return position_of(reader, reads_all(reader) ? last : &last[reader->partition], text);
}

void reader_write_event(struct event_reader *reader, const struct store_event *event)
{
    char text[EVENT_POSITION_TEXT_MAX];

    event_text_head(EVENT_NAME_UPDATE, position_of(reader, reader->at, text), &reader->text);
    event_text_data(event, &reader->text);
}

void reader_reset(struct event_reader *reader, const char *reason)
{
    char text[EVENT_POSITION_TEXT_MAX];

    become_live(reader);
    event_text_reset(position_of_hub(reader, text), reason, &reader->text);
}

/* ---- reading ---- */

static size_t copy(char *out, size_t max, struct span from, size_t *skip)
{
    if (*skip >= from.len) {
        *skip -= from.len;
        return 0;
    }
    const size_t left = from.len - *skip;
    const size_t len = left < max ? left : max;

    memcpy(out, from.ptr + *skip, len);
    *skip = 0;
    return len;
}

static uint64_t next_of(const struct event_reader *reader, const struct event_record *record)
{
    const enum event_scope scope = reader->channel->scope;

    if (scope != SCOPE_ALL) {
        return record->next[scope];
    }
    return reader->cursor + 1 < reader->hub->ring.next ? reader->cursor + 1 : 0;
}

/* LIVE: of the record at the cursor. */
static size_t copy_record(struct event_reader *reader, char *out, size_t max)
{
    const struct event_record *record = event_ring_get(&reader->hub->ring, reader->cursor);

    if (!record) {
        reader_cut(reader);
        return 0;
    }
    if (reader->sent == 0 && !may_see(reader, record->workspace)) {
        reader->cursor = next_of(reader, record);
        return 0;
    }
    const struct span head = reads_all(reader) ? record->head_all : record->head;
    size_t skip = reader->sent;
    size_t len = copy(out, max, head, &skip);

    if (skip > 0 || len < max) {
        len += copy(out + len, max - len, record->data, &skip);
    }
    reader->sent += len;
    if (reader->sent == head.len + record->data.len) {
        reader->sent = 0;
        reader->cursor = next_of(reader, record);
    }
    return len;
}

/* The rest of a page's or heartbeat's text; freed once it is sent. */
static size_t copy_text(struct event_reader *reader, char *out, size_t max)
{
    const size_t left = reader->text.len - reader->text_sent;
    const size_t len = left < max ? left : max;

    if (len > 0) {
        memcpy(out, reader->text.bytes + reader->text_sent, len);
    }
    reader->text_sent += len;
    if (reader->text_sent == reader->text.len && reader->text.cap > 0) {
        buf_done(&reader->text);
        buf_init(&reader->text, EVENT_TEXT_MAX);
        reader->text_sent = 0;
    }
    return len;
}

/* STORE: false: nothing to do but to wait. */
static bool advance_store(struct event_reader *reader)
{
    const int64_t partition = pages_wanted(reader);

    if (reader->is_asking || reader->is_in_row) {
        return false;
    }
    if (partition >= 0) {
        pages_ask(reader, (uint32_t)partition);
        return false;
    }
    reader->mode = READER_SCAN;
    reader->cursor = reader->hub->ring.first;
    return true;
}

static bool is_ahead(struct event_reader *reader)
{
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        if ((reads_all(reader) || p == reader->partition) &&
            stream_id_compare(*reader_at(reader, p), reader->hub->last[p]) > 0) {
            return true;
        }
    }
    return false;
}

/* Writes the record if it is a new one for this reader. */
static void scan_record(struct event_reader *reader, const struct event_record *record)
{
    if (!record->is_placed || (!reads_all(reader) && record->partition != reader->partition)) {
        return;
    }
    struct stream_id *at = reader_at(reader, record->partition);

    if (stream_id_compare(record->id, *at) <= 0) {
        return;
    }
    *at = record->id;
    if (reader_wants(reader, record->workspace, record->session)) {
        char text[EVENT_POSITION_TEXT_MAX];

        event_text_head(EVENT_NAME_UPDATE, position_of(reader, reader->at, text), &reader->text);
        (void)buf_append(&reader->text, record->data.ptr, record->data.len);
    }
}

/* SCAN: on to the next event for it, or to the ring's end, where it becomes LIVE. */
static bool advance_scan(struct event_reader *reader)
{
    struct event_hub *hub = reader->hub;

    while (reader->cursor < hub->ring.next && reader->text.len == 0) {
        const struct event_record *record = event_ring_get(&hub->ring, reader->cursor);

        if (!record) {
            reader_cut(reader);
            return false;
        }
        scan_record(reader, record);
        reader->cursor++;
    }
    if (reader->text.len > 0) {
        return true;
    }
    if (is_ahead(reader)) {
        hub->ahead_count += !reader->is_ahead;
        reader->is_ahead = true;
        return false;
    }
    become_live(reader);
    reader->is_heartbeat_due = true; /* tells that all was told */
    return true;
}

/* A heartbeat, if it is due and nothing else is to be said; while the position can't be told yet, a
 * comment. */
static bool write_heartbeat(struct event_reader *reader)
{
    char text[EVENT_POSITION_TEXT_MAX];

    if (!reader->is_heartbeat_due) {
        return false;
    }
    reader->is_heartbeat_due = false;
    if (reader->mode == READER_LIVE) {
        event_text_heartbeat(position_of_hub(reader, text), clock_wall_ms(), &reader->text);
    } else {
        (void)buf_append_str(&reader->text, ": one moment\n\n");
    }
    return true;
}

/* Makes more to send; false: there is nothing now. */
static bool advance(struct event_reader *reader)
{
    switch (reader->mode) {
    case READER_JOINING:
        return false;
    case READER_STORE:
        return advance_store(reader) || write_heartbeat(reader);
    case READER_SCAN:
        return advance_scan(reader) || write_heartbeat(reader);
    case READER_LIVE:
        return reader->cursor > 0 || write_heartbeat(reader);
    }
    return false;
}

int64_t event_reader_read(struct event_reader *reader, char *out, size_t max)
{
    size_t len = 0;

    while (len < max && !reader->is_cut && !reader->text.failed) {
        if (reader->text.len > 0) {
            len += copy_text(reader, out + len, max - len);
        } else if (reader->hub->is_draining && reader->sent == 0) {
            return len > 0 ? (int64_t)len : EVENT_READER_END;
        } else if (reader->mode == READER_LIVE && reader->cursor > 0) {
            len += copy_record(reader, out + len, max - len);
        } else if (!advance(reader)) {
            break;
        }
    }
    if (len > 0) {
        reader->is_heartbeat_due = false;
        hub_reader_spoke(reader->hub, reader);
        return (int64_t)len;
    }
    if (reader->is_cut || reader->text.failed) {
        return EVENT_READER_END;
    }
    reader->is_waiting = true;
    return 0;
}
