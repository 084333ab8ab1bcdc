/* Who follows what. An event costs two look-ups and those whom it concerns, however many readers
 * there are; a channel exists as long as it has readers. */
#include <errno.h>
#include <stdlib.h>

#include "api/event_private.h"

static uint64_t hash(struct span workspace, struct span session)
{
    const uint64_t of_session = session.len > 0 ? fnv1a64(session.ptr, session.len) : 0;

    return fnv1a64(workspace.ptr, workspace.len) * 31 + of_session;
}

static struct channel **find(struct event_hub *hub, struct span workspace, struct span session)
{
    struct channel **at = &hub->buckets[hash(workspace, session) % CHANNEL_BUCKETS];

    while (*at && (!span_equal((struct span){(*at)->workspace, (*at)->workspace_len}, workspace) ||
                   !span_equal((struct span){(*at)->session, (*at)->session_len}, session))) {
        at = &(*at)->behind;
    }
    return at;
}

/* Names are valid ones: they fit. */
static struct channel *create(struct span workspace, struct span session)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    if (channel) {
        channel->scope = session.len > 0 ? SCOPE_SESSION : SCOPE_WORKSPACE;
        channel->workspace_len = workspace.len;
        channel->session_len = session.len;
        memcpy(channel->workspace, workspace.ptr, workspace.len);
        if (session.len > 0) {
            memcpy(channel->session, session.ptr, session.len);
        }
    }
    return channel;
}

static void watch(struct event_hub *hub, const struct event_reader *reader, bool is_joining)
{
    for (uint32_t p = 0; p < PARTITION_COUNT; p++) {
        if (!reads_all(reader) && p != reader->partition) {
            continue;
        }
        hub->listeners[p] += is_joining ? 1U : UINT32_MAX;
        if (hub->listeners[p] == (is_joining ? 1U : 0U)) {
            event_delayed_watch(hub->delayed, p, is_joining);
        }
    }
}

int channels_join(struct event_hub *hub, struct event_reader *reader)
{
    struct channel *channel = &hub->all;

    if (!reads_all(reader)) {
        struct channel **at = find(hub, reader->options.workspace, reader->options.session);

        if (!*at) {
            *at = create(reader->options.workspace, reader->options.session);
        }
        if (!*at) {
            return -ENOMEM;
        }
        channel = *at;
    }
    reader->channel = channel;
    reader->previous = NULL;
    reader->next = channel->readers;
    if (reader->next) {
        reader->next->previous = reader;
    }
    channel->readers = reader;
    watch(hub, reader, true);
    return 0;
}

void channels_leave(struct event_hub *hub, struct event_reader *reader)
{
    struct channel *channel = reader->channel;

    if (!channel) {
        return;
    }
    reader->channel = NULL;
    if (reader->next) {
        reader->next->previous = reader->previous;
    }
    if (reader->previous) {
        reader->previous->next = reader->next;
    } else {
        channel->readers = reader->next;
    }
    watch(hub, reader, false);
    if (!channel->readers && channel != &hub->all) {
        struct channel **at = find(hub, reader->options.workspace, reader->options.session);

        *at = channel->behind;
        free(channel);
    }
}

static void tell(struct event_hub *hub, struct channel *channel, uint64_t number)
{
    if (channel->scope != SCOPE_ALL) {
        struct event_record *before = event_ring_get(&hub->ring, channel->tail);

        if (before) {
            before->next[channel->scope] = number;
        }
    }
    channel->tail = number;
    for (struct event_reader *reader = channel->readers; reader; reader = reader->next) {
        if (reader->mode == READER_LIVE && reader->cursor == 0) {
            reader->cursor = number;
        }
        reader_wake(reader);
    }
}

void channels_tell(struct event_hub *hub, uint64_t number)
{
    const struct event_record *record = event_ring_get(&hub->ring, number);
    struct channel *of_workspace = *find(hub, record->workspace, (struct span){0});
    struct channel *of_session =
        record->session.len > 0 ? *find(hub, record->workspace, record->session) : NULL;

    if (of_workspace) {
        tell(hub, of_workspace, number);
    }
    if (of_session) {
        tell(hub, of_session, number);
    }
    tell(hub, &hub->all, number);
}
