/* Open addressing, at most half full. */
#include "tests/store/crash/seen.h"

#include <stdlib.h>

#define ROOM_MIN 1024

static struct seen_row *row_of(const struct seen *seen, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15U >> 20) & (seen->room - 1);

    while (seen->rows[at].key != 0 && seen->rows[at].key != key) {
        at = (at + 1) & (seen->room - 1);
    }
    return &seen->rows[at];
}

static void allocate(struct seen *seen, size_t room)
{
    seen->rows = calloc(room, sizeof(*seen->rows));
    if (!seen->rows) {
        abort();
    }
    seen->room = room;
}

void seen_init(struct seen *seen)
{
    *seen = (struct seen){0};
    allocate(seen, ROOM_MIN);
}

void seen_done(struct seen *seen)
{
    free(seen->rows);
    *seen = (struct seen){0};
}

uint64_t *seen_find(const struct seen *seen, uint64_t key)
{
    struct seen_row *row = row_of(seen, key);

    return row->key != 0 ? &row->number : NULL;
}

static void grow(struct seen *seen)
{
    const struct seen old = *seen;

    allocate(seen, 2 * old.room);
    for (size_t i = 0; i < old.room; i++) {
        if (old.rows[i].key != 0) {
            *row_of(seen, old.rows[i].key) = old.rows[i];
        }
    }
    free(old.rows);
}

void seen_add(struct seen *seen, uint64_t key, uint64_t number)
{
    if (2 * (seen->count + 1) > seen->room) {
        grow(seen);
    }
    *row_of(seen, key) = (struct seen_row){key, number};
    seen->count++;
}
