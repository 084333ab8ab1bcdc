/* Random bytes for IDs, drawn in pages: one system call for hundreds of entries. Not for secrets.
 */
#ifndef API_ENTROPY_H
#define API_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/ids.h"

struct entropy {
    uint8_t page[4096];
    size_t left;
};

/* A new entry ID from the wall clock and ten random bytes, none of them ever used twice. */
struct entry_id entropy_entry_id(struct entropy *entropy);

#endif
