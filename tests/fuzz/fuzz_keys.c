/* Names in the store, entry IDs and lock tokens: what is read is what would have been written. */
#include "common/core/ids.h"
#include "common/core/keys.h"
#include "tests/fuzz/fuzz.h"

#define RAW_MAX 512

static void check_percent(const char *text, size_t len)
{
    char encoded[3 * RAW_MAX + 1], decoded[RAW_MAX + 1];
    int64_t size = percent_encode(text, len, encoded, sizeof(encoded));

    MUST_HOLD(size >= (int64_t)len && encoded[size] == '\0');
    MUST_HOLD(percent_encode(text, len, encoded, (size_t)size) < 0); /* no place for the NUL */
    MUST_HOLD(percent_encode(text, len, encoded, (size_t)size + 1) == size);
    MUST_HOLD(percent_decode(encoded, (size_t)size, decoded, len + 1) == (int64_t)len);
    MUST_HOLD(len == 0 || memcmp(decoded, text, len) == 0);

    size = percent_decode(text, len, decoded, sizeof(decoded));
    if (size >= 0) { /* no two texts name one key */
        MUST_HOLD(percent_encode(decoded, (size_t)size, encoded, sizeof(encoded)) == (int64_t)len);
        MUST_HOLD(len == 0 || memcmp(encoded, text, len) == 0);
    }
}

static void check_token(const char *text, size_t len)
{
    struct token_parts parts;

    if (lock_token_parse(text, len, &parts) < 0) {
        return;
    }
    const struct lock_token again = lock_token_make(&parts);
    const struct lock_token slot = lock_token_slot_prefix(&parts);
    const struct lock_token process = lock_token_process_prefix(&parts);

    MUST_HOLD(node_name_is_valid(parts.node));
    MUST_HOLD(strlen(again.text) == len && memcmp(again.text, text, len) == 0);
    MUST_HOLD(strncmp(again.text, slot.text, strlen(slot.text)) == 0);
    MUST_HOLD(strncmp(again.text, process.text, strlen(process.text)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;

    if (len > RAW_MAX) {
        return 0;
    }
    check_percent(text, len);
    check_token(text, len);
    MUST_HOLD(!entry_id_is_valid(text, len) || len == ENTRY_ID_LEN);
    MUST_HOLD(!workspace_name_is_valid(text, len) || session_name_is_valid(text, len));
    MUST_HOLD(partition_of(text, len) < PARTITION_COUNT);
    if (len >= 18) { /* 8 bytes of time, 10 random ones */
        int64_t ms;

        memcpy(&ms, bytes, sizeof(ms));
        const struct entry_id id = entry_id_make(ms & 0xffffffffffff, bytes + 8);

        MUST_HOLD(entry_id_is_valid(id.text, strlen(id.text)));
    }
    return 0;
}
