/* The body of an entry as msgpack: a map of the contract's names to strings. Written with
 * msgpack-c; read by hand, for msgpack-c reserves memory for as many members as a stranger's five
 * bytes promise before it has seen one of them. Reading never allocates, never copies, and bounds
 * its nesting. */
#include <errno.h>
#include <msgpack.h>

#include "common/store/entry.h"

#define NESTING_MAX 32 /* of members that we skip */

/* ---- writing
 * ------------------------------------------------------------------------------------------------
 */

static int write_to_buf(void *out, const char *bytes, size_t len)
{
    return buf_append(out, bytes, len);
}

static int pack_str(msgpack_packer *packer, struct span text)
{
    int err = msgpack_pack_str(packer, text.len);

    return err < 0 || text.len == 0 ? err : msgpack_pack_str_body(packer, text.ptr, text.len);
}

static int pack_member(msgpack_packer *packer, const char *name, struct span value)
{
    int err = pack_str(packer, span_of(name));

    return err < 0 ? err : pack_str(packer, value);
}

static int pack_depends_on(msgpack_packer *packer, const struct entry_body *body)
{
    int err = pack_str(packer, span_of("dependsOn"));

    if (err == 0) {
        err = msgpack_pack_array(packer, body->depends_on_count);
    }
    for (uint32_t i = 0; err == 0 && i < body->depends_on_count; i++) {
        err = pack_str(packer, body->depends_on[i]);
    }
    return err;
}

/* The members that are plain text: an empty one is left out, for it means "absent" (`text` alone
 * tells the two apart). */
static const struct {
    const char *name;
    size_t offset;
} members[] = {
    {"clientMessageID", offsetof(struct entry_body, client_message_id)},
    {"userID", offsetof(struct entry_body, user_id)},
    {"kind", offsetof(struct entry_body, kind)},
    {"text", offsetof(struct entry_body, text)},
    {"model", offsetof(struct entry_body, model)},
    {"payload", offsetof(struct entry_body, payload)},
    {"traceparent", offsetof(struct entry_body, traceparent)},
};
#define MEMBER_COUNT (sizeof(members) / sizeof(members[0]))

static bool is_text_member(size_t i)
{
    return members[i].offset == offsetof(struct entry_body, text);
}

static struct span member_of(const struct entry_body *body, size_t i)
{
    return *(const struct span *)(const void *)((const char *)body + members[i].offset);
}

static bool is_present(const struct entry_body *body, size_t i)
{
    return is_text_member(i) ? body->has_text : member_of(body, i).len > 0;
}

int entry_body_encode(const struct entry_body *body, struct buf *out)
{
    msgpack_packer packer;
    size_t count = body->depends_on_count > 0;
    int err;

    if (body->depends_on_count > DEPENDS_ON_MAX) {
        return -ENOBUFS;
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        count += is_present(body, i);
        if (member_of(body, i).len > UINT32_MAX) {
            return -ENOBUFS;
        }
    }
    msgpack_packer_init(&packer, out, write_to_buf);
    err = msgpack_pack_map(&packer, count);
    for (size_t i = 0; err == 0 && i < MEMBER_COUNT; i++) {
        if (is_present(body, i)) {
            err = pack_member(&packer, members[i].name, member_of(body, i));
        }
    }
    if (err == 0 && body->depends_on_count > 0) {
        err = pack_depends_on(&packer, body);
    }
    return err;
}

/* ---- reading
 * ------------------------------------------------------------------------------------------------
 */

struct reader {
    const unsigned char *at, *end;
};

enum item_type { ITEM_NIL, ITEM_TEXT, ITEM_ARRAY, ITEM_MAP, ITEM_OTHER };
struct item {
    enum item_type type;
    struct span text; /* ITEM_TEXT: str and bin alike */
    uint32_t count;   /* ITEM_ARRAY: elements, ITEM_MAP: pairs */
};

static size_t left(const struct reader *in)
{
    return (size_t)(in->end - in->at);
}

static int read_number(struct reader *in, size_t bytes, uint32_t *ret)
{
    uint32_t number = 0;

    if (left(in) < bytes) {
        return -EBADMSG;
    }
    for (size_t i = 0; i < bytes; i++) {
        number = number << 8 | *in->at++;
    }
    *ret = number;
    return 0;
}

static int read_bytes(struct reader *in, size_t len, struct span *ret)
{
    if (left(in) < len) {
        return -EBADMSG;
    }
    *ret = (struct span){(const char *)in->at, len};
    in->at += len;
    return 0;
}

/* How each first byte from 0xc0 to 0xdf goes on: bytes of a length, then bytes of its own, then
 * what the length counts. */
static const struct {
    enum item_type type;
    uint8_t length_bytes, fixed_bytes;
    bool is_bad;
} forms[32] = {
    [0x00] = {.type = ITEM_NIL},
    [0x01] = {.type = ITEM_OTHER, .is_bad = true},   /* never used */
    [0x02] = {.type = ITEM_OTHER},                   /* false */
    [0x03] = {.type = ITEM_OTHER},                   /* true */
    [0x04] = {.type = ITEM_TEXT, .length_bytes = 1}, /* bin 8, 16, 32 */
    [0x05] = {.type = ITEM_TEXT, .length_bytes = 2},
    [0x06] = {.type = ITEM_TEXT, .length_bytes = 4},
    [0x07] = {.type = ITEM_OTHER, .length_bytes = 1, .fixed_bytes = 1}, /* ext 8, 16, 32 */
    [0x08] = {.type = ITEM_OTHER, .length_bytes = 2, .fixed_bytes = 1},
    [0x09] = {.type = ITEM_OTHER, .length_bytes = 4, .fixed_bytes = 1},
    [0x0a] = {.type = ITEM_OTHER, .fixed_bytes = 4}, /* float 32, 64 */
    [0x0b] = {.type = ITEM_OTHER, .fixed_bytes = 8},
    [0x0c] = {.type = ITEM_OTHER, .fixed_bytes = 1}, /* uint 8, 16, 32, 64 */
    [0x0d] = {.type = ITEM_OTHER, .fixed_bytes = 2},
    [0x0e] = {.type = ITEM_OTHER, .fixed_bytes = 4},
    [0x0f] = {.type = ITEM_OTHER, .fixed_bytes = 8},
    [0x10] = {.type = ITEM_OTHER, .fixed_bytes = 1}, /* int 8, 16, 32, 64 */
    [0x11] = {.type = ITEM_OTHER, .fixed_bytes = 2},
    [0x12] = {.type = ITEM_OTHER, .fixed_bytes = 4},
    [0x13] = {.type = ITEM_OTHER, .fixed_bytes = 8},
    [0x14] = {.type = ITEM_OTHER, .fixed_bytes = 2}, /* fixext 1, 2, 4, 8, 16 */
    [0x15] = {.type = ITEM_OTHER, .fixed_bytes = 3},
    [0x16] = {.type = ITEM_OTHER, .fixed_bytes = 5},
    [0x17] = {.type = ITEM_OTHER, .fixed_bytes = 9},
    [0x18] = {.type = ITEM_OTHER, .fixed_bytes = 17},
    [0x19] = {.type = ITEM_TEXT, .length_bytes = 1}, /* str 8, 16, 32 */
    [0x1a] = {.type = ITEM_TEXT, .length_bytes = 2},
    [0x1b] = {.type = ITEM_TEXT, .length_bytes = 4},
    [0x1c] = {.type = ITEM_ARRAY, .length_bytes = 2},
    [0x1d] = {.type = ITEM_ARRAY, .length_bytes = 4},
    [0x1e] = {.type = ITEM_MAP, .length_bytes = 2},
    [0x1f] = {.type = ITEM_MAP, .length_bytes = 4},
};

/* One item; of an array or map only its head. */
static int read_item(struct reader *in, struct item *ret)
{
    uint32_t byte, length = 0;
    struct span skipped;

    if (read_number(in, 1, &byte) < 0) {
        return -EBADMSG;
    }
    *ret = (struct item){.type = ITEM_OTHER};
    if (byte <= 0x7f || byte >= 0xe0) {
        return 0; /* small integers */
    }
    if (byte <= 0x9f) {
        ret->type = byte <= 0x8f ? ITEM_MAP : ITEM_ARRAY;
        ret->count = byte & 0x0f;
        return 0;
    }
    if (byte <= 0xbf) {
        ret->type = ITEM_TEXT;
        return read_bytes(in, byte & 0x1f, &ret->text);
    }
    size_t form = byte - 0xc0;

    if (forms[form].is_bad || read_number(in, forms[form].length_bytes, &length) < 0) {
        return -EBADMSG;
    }
    ret->type = forms[form].type;
    switch (ret->type) {
    case ITEM_TEXT:
        return read_bytes(in, length, &ret->text);
    case ITEM_ARRAY:
    case ITEM_MAP:
        ret->count = length;
        return 0;
    case ITEM_NIL:
    case ITEM_OTHER:
        break;
    }
    return read_bytes(in, (size_t)length + forms[form].fixed_bytes, &skipped);
}

/* What follows the head of an item that nobody wants: without recursion, for a stranger chose how
 * deep it goes. Each step reads at least a byte, so promised counts cost nothing. */
static int skip_rest(struct reader *in, const struct item *head)
{
    uint64_t open[NESTING_MAX];
    size_t depth = 0;
    struct item item = *head;

    for (;;) {
        if (item.type == ITEM_ARRAY || item.type == ITEM_MAP) {
            if (depth == NESTING_MAX) {
                return -EBADMSG;
            }
            open[depth++] = (uint64_t)item.count * (item.type == ITEM_MAP ? 2 : 1);
        }
        while (depth > 0 && open[depth - 1] == 0) {
            depth--;
        }
        if (depth == 0) {
            return 0;
        }
        open[depth - 1]--;
        if (read_item(in, &item) < 0) {
            return -EBADMSG;
        }
    }
}

static int read_depends_on(struct reader *in, const struct item *head, struct entry_body *body)
{
    body->depends_on_count = 0;
    if (head->type == ITEM_NIL) {
        return 0;
    }
    if (head->type == ITEM_MAP && head->count == 0) {
        return 0; /* Lua's cmsgpack writes an empty table so */
    }
    if (head->type != ITEM_ARRAY || head->count > DEPENDS_ON_MAX) {
        return -EBADMSG;
    }
    for (uint32_t i = 0; i < head->count; i++) {
        struct item item;

        if (read_item(in, &item) < 0 || item.type != ITEM_TEXT) {
            return -EBADMSG;
        }
        body->depends_on[body->depends_on_count++] = item.text;
    }
    return 0;
}

static int read_member(struct reader *in, struct span name, struct entry_body *body)
{
    struct item item;

    if (read_item(in, &item) < 0) {
        return -EBADMSG;
    }
    if (span_equal(name, span_of("dependsOn"))) {
        return read_depends_on(in, &item, body);
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (!span_equal(name, span_of(members[i].name))) {
            continue;
        }
        if (item.type != ITEM_TEXT && item.type != ITEM_NIL) {
            return -EBADMSG;
        }
        *(struct span *)(void *)((char *)body + members[i].offset) = item.text;
        if (is_text_member(i)) {
            body->has_text = item.type == ITEM_TEXT;
        }
        return 0;
    }
    return skip_rest(in, &item);
}

int entry_body_decode(struct span bytes, struct entry_body *ret)
{
    struct entry_body body = {0};
    struct item head;

    if (bytes.len == 0) {
        return -EBADMSG;
    }
    struct reader in = {(const unsigned char *)bytes.ptr,
                        (const unsigned char *)bytes.ptr + bytes.len};

    if (read_item(&in, &head) < 0 || head.type != ITEM_MAP) {
        return -EBADMSG;
    }
    for (uint32_t i = 0; i < head.count; i++) {
        struct item name;

        if (read_item(&in, &name) < 0 || name.type != ITEM_TEXT ||
            read_member(&in, name.text, &body) < 0) {
            return -EBADMSG;
        }
    }
    if (left(&in) > 0) {
        return -EBADMSG;
    }
    *ret = body;
    return 0;
}
