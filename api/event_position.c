/* Writes and reads positions. Reading is strict: every byte comes from strangers. */
#include "api/event_position.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>

#define VARINT_MAX 10
/* The latest time, and per partition two numbers. */
#define BYTES_MAX  ((size_t)VARINT_MAX * (1 + 2 * PARTITION_COUNT))
#define VARIANT    sodium_base64_VARIANT_URLSAFE_NO_PADDING

static_assert(1 + (BYTES_MAX * 4 + 2) / 3 < EVENT_POSITION_TEXT_MAX, "the longest one fits");

static struct stream_id bounded(struct stream_id id)
{
    return id.ms <= EVENT_POSITION_MS_MAX ? id : (struct stream_id){EVENT_POSITION_MS_MAX, id.seq};
}

size_t event_position_write(uint32_t partition, struct stream_id id,
                            char out[EVENT_POSITION_TEXT_MAX])
{
    char text[STREAM_ID_TEXT_MAX];

    stream_id_format(bounded(id), text);
    return (size_t)snprintf(out, EVENT_POSITION_TEXT_MAX, "p%u.%s", partition, text);
}

/* ---- varints: seven bits a byte, the lowest first ---- */

static size_t put(unsigned char *at, uint64_t value)
{
    size_t len = 0;

    while (value >= 0x80) {
        at[len++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    at[len++] = (unsigned char)value;
    return len;
}

struct bytes {
    const unsigned char *at, *end;
};

/* Refuses what `put` would not have written: too long, or with a zero at its end. */
static int take(struct bytes *bytes, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; bytes->at < bytes->end && shift < 64; shift += 7) {
        const unsigned char byte = *bytes->at++;
        const uint64_t bits = byte & 0x7f;

        if ((shift == 63 && bits > 1) || (byte == 0 && shift > 0)) {
            return -EINVAL;
        }
        value |= bits << shift;
        if (byte < 0x80) {
            *ret = value;
            return 0;
        }
    }
    return -EINVAL;
}

/* Per partition: 0 for "before the first event", else 1 + twice the distance to the latest time,
 * plus one if a sequence number that is not 0 follows. */
size_t event_position_write_all(const struct stream_id at[PARTITION_COUNT],
                                char out[EVENT_POSITION_TEXT_MAX])
{
    unsigned char bytes[BYTES_MAX];
    uint64_t latest = 0;
    size_t len;

    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        const uint64_t ms = bounded(at[p]).ms;

        latest = ms > latest ? ms : latest;
    }
    len = put(bytes, latest);
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        const struct stream_id id = bounded(at[p]);

        if (id.ms == 0 && id.seq == 0) {
            len += put(bytes + len, 0);
            continue;
        }
        len += put(bytes + len, 1 + (latest - id.ms) * 2 + (id.seq > 0));
        if (id.seq > 0) {
            len += put(bytes + len, id.seq);
        }
    }
    out[0] = 'g';
    (void)sodium_bin2base64(out + 1, EVENT_POSITION_TEXT_MAX - 1, bytes, len, VARIANT);
    return strlen(out);
}

static int read_one(struct bytes *bytes, uint64_t latest, struct stream_id *ret)
{
    uint64_t head;

    *ret = (struct stream_id){0};
    if (take(bytes, &head) < 0) {
        return -EINVAL;
    }
    if (head == 0) {
        return 0;
    }
    if ((head - 1) / 2 > latest) {
        return -EINVAL;
    }
    ret->ms = latest - (head - 1) / 2;
    if ((head - 1) % 2 == 0) {
        return ret->ms > 0 ? 0 : -EINVAL;
    }
    return take(bytes, &ret->seq) == 0 && ret->seq > 0 ? 0 : -EINVAL;
}

int event_position_read_all(struct span text, struct stream_id ret[PARTITION_COUNT])
{
    struct stream_id at[PARTITION_COUNT];
    unsigned char decoded[BYTES_MAX];
    size_t len;
    uint64_t latest, found = 0;

    if (text.len < 2 || text.len >= EVENT_POSITION_TEXT_MAX || text.ptr[0] != 'g' ||
        sodium_base642bin(decoded, sizeof(decoded), text.ptr + 1, text.len - 1, NULL, &len, NULL,
                          VARIANT) != 0) {
        return -EINVAL;
    }
    struct bytes bytes = {decoded, decoded + len};

    if (take(&bytes, &latest) < 0 || latest > EVENT_POSITION_MS_MAX) {
        return -EINVAL;
    }
    for (size_t p = 0; p < PARTITION_COUNT; p++) {
        if (read_one(&bytes, latest, &at[p]) < 0) {
            return -EINVAL;
        }
        found = at[p].ms > found ? at[p].ms : found;
    }
    if (bytes.at != bytes.end || found != latest) {
        return -EINVAL;
    }
    /* libsodium takes some bytes that are not ASCII for letters. */
    char again[EVENT_POSITION_TEXT_MAX] = "";

    if (!span_equal((struct span){again, event_position_write_all(at, again)}, text)) {
        return -EINVAL;
    }
    memcpy(ret, at, sizeof(at));
    return 0;
}

int event_position_read(struct span text, uint32_t partition, struct stream_id *ret)
{
    struct stream_id all[PARTITION_COUNT], id;
    char head[16];

    if (partition >= PARTITION_COUNT) {
        return -EINVAL;
    }
    if (text.len > 0 && text.ptr[0] == 'g') {
        if (event_position_read_all(text, all) < 0) {
            return -EINVAL;
        }
        *ret = all[partition];
        return 0;
    }
    const size_t len = (size_t)snprintf(head, sizeof(head), "p%u.", partition);

    if (text.len <= len || memcmp(text.ptr, head, len) != 0 ||
        stream_id_parse((struct span){text.ptr + len, text.len - len}, &id) < 0 ||
        id.ms > EVENT_POSITION_MS_MAX) {
        return -EINVAL;
    }
    *ret = id;
    return 0;
}
