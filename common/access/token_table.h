/* The token file: who may call the API. Read into a table; nobody can get a token out of either.
 *
 *   # a line per token, blanks between; behind the workspaces a name or comment for people
 *   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 client team-*,home
 * billing
 *
 * Contract §11. Needs sodium_init(). */
#ifndef COMMON_ACCESS_TOKEN_TABLE_H
#define COMMON_ACCESS_TOKEN_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/access/role.h"
#include "common/access/token.h"
#include "common/core/span.h"

#define TOKEN_FILE_MAX  (4U << 20) /* bytes */
#define TOKEN_LINE_MAX  4096
#define TOKEN_COUNT_MAX 10000 /* each request is compared with every one */

struct buf;

struct access_token {
    unsigned char hash[TOKEN_HASH_BYTES];
    enum access_role role;
    struct span workspaces; /* patterns; they and the name stand in the table's own text */
    struct span name;       /* may be empty */
    size_t line;
};

struct token_table; /* immutable */

/* 0 and *ret for the caller to destroy, -EINVAL: mistakes, each a line "NAME:LINE: …" in `mistakes`
 * (which show nothing of what stands where a hash should: it might be a token), or -ENOMEM. No
 * token at all is no mistake: then nobody may call. */
int token_table_parse(const char *name, struct span text, struct token_table **ret,
                      struct buf *mistakes);
void token_table_destroy(struct token_table **table);
size_t token_table_count(const struct token_table *table);
const struct access_token *token_table_get(const struct token_table *table, size_t index);
/* NULL: there is none such. Takes the same time whichever it is, or none. */
const struct access_token *token_table_find(const struct token_table *table, struct span token);
bool access_token_may_touch(const struct access_token *token, struct span workspace);

/* A line of the file, with its line end. False: it can't stand there (workspaces, name). */
bool token_line_write(const unsigned char hash[TOKEN_HASH_BYTES], enum access_role role,
                      struct span workspaces, struct span name, struct buf *out);

#endif
