/* Keys of states that were seen, with a number for each. Grows as needed. */
#ifndef TESTS_STORE_CRASH_SEEN_H
#define TESTS_STORE_CRASH_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_row {
    uint64_t key; /* 0: free */
    uint64_t number;
};
struct seen {
    struct seen_row *rows;
    size_t room, count;
};

void seen_init(struct seen *seen);
void seen_done(struct seen *seen);
/* The number of a key, or NULL. Valid until the next call of seen_add. */
uint64_t *seen_find(const struct seen *seen, uint64_t key);
/* A key that is not there yet. */
void seen_add(struct seen *seen, uint64_t key, uint64_t number);

#endif
