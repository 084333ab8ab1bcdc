/* An entry and a tombstone as JSON, under the names of contract §3. Pure: time comes in. */
#ifndef API_ENTRY_JSON_H
#define API_ENTRY_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/buf.h"
#include "common/store/store.h"

/* What is known beside the entry itself. */
struct entry_context {
    int64_t now_ms;         /* the store's clock */
    int64_t stuck_after_ms; /* for `delayed` */
    bool is_in_flight;
    int64_t in_flight_since_ms; /* 0: not known */
    bool is_blocked;            /* another entry of its session is in flight */
};

/* One object. */
void entry_json_write(const struct entry *entry, struct span id,
                      const struct entry_context *context, struct buf *out);
void entry_json_write_tombstone(const struct tombstone *tombstone, struct span id, struct buf *out);

#endif
