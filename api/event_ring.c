/* A ring of allocated records. */
#include "api/event_ring.h"

#include <errno.h>
#include <stdlib.h>

#include "api/event_position.h"
#include "api/event_text.h"
#include "common/store/store_events.h"

#define RECORDS_MAX 16384 /* a power of two */
#define BYTES_MAX   ((size_t)16 << 20)

static struct span keep(struct event_record *record, struct span bytes)
{
    char *at = record->bytes + record->size;

    if (bytes.len > 0) {
        memcpy(at, bytes.ptr, bytes.len);
    }
    record->size += bytes.len;
    return (struct span){at, bytes.len};
}

/* What an event is about when its own names are lost: nobody's. */
struct event_record *event_record_create(const struct store_event *event, bool is_placed,
                                         struct span position_all, struct buf *scratch)
{
    const struct span workspace = store_event_field(event, "workspaceID");
    const struct span session = store_event_field(event, "sessionID");
    char position[EVENT_POSITION_TEXT_MAX];
    const size_t len = is_placed ? event_position_write(event->partition, event->id, position) : 0;

    buf_reset(scratch);
    event_text_head(EVENT_NAME_UPDATE, (struct span){position, len}, scratch);
    const size_t head_len = scratch->len;

    event_text_head(EVENT_NAME_UPDATE, position_all, scratch);
    const size_t head_all_len = scratch->len - head_len;

    event_text_data(event, scratch);
    if (scratch->failed) {
        abort(); /* out of memory: the scratch buffer has room for any event */
    }
    struct event_record *record =
        malloc(sizeof(*record) + workspace.len + session.len + scratch->len);

    if (!record) {
        abort();
    }
    *record = (struct event_record){
        .partition = event->partition, .id = event->id, .is_placed = is_placed};
    const size_t data_at = head_len + head_all_len;

    record->workspace = keep(record, workspace);
    record->session = keep(record, session);
    record->head = keep(record, (struct span){scratch->bytes, head_len});
    record->head_all = keep(record, (struct span){scratch->bytes + head_len, head_all_len});
    record->data = keep(record, (struct span){scratch->bytes + data_at, scratch->len - data_at});
    record->size += sizeof(*record);
    return record;
}

int event_ring_init(struct event_ring *ring)
{
    *ring = (struct event_ring){.first = 1, .next = 1};
    ring->records = calloc(RECORDS_MAX, sizeof(struct event_record *));
    return ring->records ? 0 : -ENOMEM;
}

static struct event_record **place_of(const struct event_ring *ring, uint64_t number)
{
    return &ring->records[number % RECORDS_MAX];
}

static void drop_oldest(struct event_ring *ring)
{
    struct event_record **place = place_of(ring, ring->first++);
    struct event_record *record = *place;

    *place = NULL;
    ring->bytes -= record->size;
    if (record->is_placed) {
        ring->floor[record->partition] =
            stream_id_later(ring->floor[record->partition], record->id);
    }
    free(record);
}

void event_ring_clear(struct event_ring *ring, const struct stream_id floor[PARTITION_COUNT])
{
    while (ring->first < ring->next) {
        drop_oldest(ring);
    }
    memcpy(ring->floor, floor, sizeof(ring->floor));
}

void event_ring_done(struct event_ring *ring)
{
    while (ring->first < ring->next) {
        drop_oldest(ring);
    }
    free(ring->records);
    ring->records = NULL;
}

uint64_t event_ring_append(struct event_ring *ring, struct event_record *record)
{
    while (ring->first < ring->next &&
           (ring->next - ring->first == RECORDS_MAX || ring->bytes + record->size > BYTES_MAX)) {
        drop_oldest(ring);
    }
    *place_of(ring, ring->next) = record;
    ring->bytes += record->size;
    return ring->next++;
}

struct event_record *event_ring_get(const struct event_ring *ring, uint64_t number)
{
    return number >= ring->first && number < ring->next ? *place_of(ring, number) : NULL;
}
