/* Entry IDs, lock tokens and the names of what they are made of. Pure: time and randomness are
 * given. */
#ifndef COMMON_CORE_IDS_H
#define COMMON_CORE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "ob_" + 26 characters of Crockford base32 (lower case): 48 bits of Unix milliseconds, 80 random
 * bits. Sortable by time as text. */
#define ENTRY_ID_LEN 29
struct entry_id {
    char text[ENTRY_ID_LEN + 1];
};
struct entry_id entry_id_make(int64_t wall_ms, const uint8_t random[10]);
/* Whether the text has exactly the form above. */
bool entry_id_is_valid(const char *text, size_t len);

/* A lock token: `node.generation.slot.random` (contract §8). `random` is the process's incarnation
 * and a claim number, both hex: `node.3f9a….5.8c21….1a2`. The incarnation is drawn by the
 * supervisor for every child it starts, so that what an earlier process in the same slot held can
 * be told from what this one holds. */
#define NODE_NAME_MAX  64
#define LOCK_TOKEN_MAX 160
struct lock_token {
    char text[LOCK_TOKEN_MAX];
};
struct token_parts {
    char node[NODE_NAME_MAX + 1]; /* [A-Za-z0-9_-]: no dot, no colon */
    uint64_t generation;
    uint32_t slot;
    uint64_t incarnation;
    uint64_t claim;
};
/* The numbers have no leading zeros; generation, incarnation and claim in lower-case hex, the slot
 * in decimal. */
struct lock_token lock_token_make(const struct token_parts *parts);
/* What every token of that slot begins with, in whatever process: `node.generation.slot.` */
struct lock_token lock_token_slot_prefix(const struct token_parts *parts);
/* The same of one process: `node.generation.slot.incarnation.` */
struct lock_token lock_token_process_prefix(const struct token_parts *parts);
/* Text from the store: untrusted. Returns 0 or -EINVAL. */
int lock_token_parse(const char *text, size_t len, struct token_parts *ret);
/* Whether `name` may be a node name: 1 to 64 of [A-Za-z0-9_-]. */
bool node_name_is_valid(const char *name);

#endif
