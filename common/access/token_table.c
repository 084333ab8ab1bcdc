/* Lines into rows, and the look-up. */
#include "common/access/token_table.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/access/workspace_pattern.h"
#include "common/core/buf.h"
#include "common/core/utf8.h"

#define HASH_PREFIX   "sha256:"
#define MISTAKES_MAX  (64U << 10)
#define ROWS_AT_FIRST 16

struct token_table {
    char *text; /* owned: what the rows' spans point into */
    struct access_token *rows;
    size_t count, cap;
};

/* ---- reading ---- */

struct reading {
    const char *name;
    size_t line;
    struct token_table *table;
    struct buf *mistakes;
    bool has_mistakes;
};

static void complain(struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(struct reading *reading, const char *format, ...)
{
    va_list args;

    reading->has_mistakes = true;
    if (reading->mistakes->len > MISTAKES_MAX) {
        return;
    }
    va_start(args, format);
    (void)buf_appendf(reading->mistakes, "%s:%zu: ", reading->name, reading->line);
    (void)buf_vappendf(reading->mistakes, format, args);
    (void)buf_append_str(reading->mistakes, "\n"); /* without memory the reader ends anyway */
    va_end(args);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct span trim(struct span text)
{
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++, text.len--;
    }
    while (text.len > 0 && (is_blank(text.ptr[text.len - 1]) || text.ptr[text.len - 1] == '\r')) {
        text.len--;
    }
    return text;
}

/* Takes the next word off the front. */
static struct span take_word(struct span *rest)
{
    struct span word = {rest->ptr, 0};

    while (word.len < rest->len && !is_blank(rest->ptr[word.len])) {
        word.len++;
    }
    *rest = trim((struct span){rest->ptr + word.len, rest->len - word.len});
    return word;
}

static bool has_prefix(struct span text, const char *prefix)
{
    return text.len >= strlen(prefix) && memcmp(text.ptr, prefix, strlen(prefix)) == 0;
}

static bool read_hash(struct reading *reading, struct span word, unsigned char *ret)
{
    size_t len = 0;
    const char *end = NULL;
    const size_t prefix = strlen(HASH_PREFIX);

    if (has_prefix(word, TOKEN_PREFIX)) {
        complain(reading, "holds a token itself, not its hash: whoever read this file may have it; "
                          "remove the line and make a new one (outboxctl token create)");
        return false;
    }
    if (!has_prefix(word, HASH_PREFIX) ||
        sodium_hex2bin(ret, TOKEN_HASH_BYTES, word.ptr + prefix, word.len - prefix, NULL, &len,
                       &end) != 0 ||
        len != TOKEN_HASH_BYTES || end != word.ptr + word.len) {
        complain(reading, "does not begin with a hash: " HASH_PREFIX
                          " and 64 hex digits (outboxctl token create makes such lines)");
        return false;
    }
    return true;
}

static bool read_role(struct reading *reading, struct span word, enum access_role *ret)
{
    if (word.len == 0 || !access_role_parse(word, ret)) {
        complain(reading, "the second word is none of client, operator, admin");
        return false;
    }
    return true;
}

static const struct access_token *earlier(const struct token_table *table,
                                          const unsigned char *hash)
{
    for (size_t i = 0; i < table->count; i++) {
        if (memcmp(table->rows[i].hash, hash, TOKEN_HASH_BYTES) == 0) {
            return &table->rows[i];
        }
    }
    return NULL;
}

static int add(struct token_table *table, const struct access_token *row)
{
    if (table->count == table->cap) {
        const size_t cap = table->cap ? table->cap * 2 : ROWS_AT_FIRST;
        struct access_token *rows = realloc(table->rows, cap * sizeof(*rows));

        if (!rows) {
            return -ENOMEM;
        }
        table->rows = rows;
        table->cap = cap;
    }
    table->rows[table->count++] = *row;
    return 0;
}

static int read_line(struct reading *reading, struct span line)
{
    struct access_token row = {.line = reading->line};
    struct span rest = trim(line);

    if (rest.len == 0 || rest.ptr[0] == '#') {
        return 0;
    }
    if (line.len > TOKEN_LINE_MAX || !utf8_is_valid(line.ptr, line.len) ||
        memchr(line.ptr, '\0', line.len)) {
        complain(reading, line.len > TOKEN_LINE_MAX ? "is longer than 4096 bytes"
                                                    : "holds bytes that are no text");
        return 0;
    }
    if (!read_hash(reading, take_word(&rest), row.hash) ||
        !read_role(reading, take_word(&rest), &row.role)) {
        return 0;
    }
    row.workspaces = take_word(&rest);
    row.name = rest;
    const char *refusal = workspace_patterns_refusal(row.workspaces);
    if (refusal) {
        complain(reading, "the third word %s", refusal);
        return 0;
    }
    const struct access_token *first = earlier(reading->table, row.hash);
    if (first) {
        complain(reading, "is the token of line %zu: remove one of them", first->line);
        return 0;
    }
    if (reading->table->count == TOKEN_COUNT_MAX) {
        complain(reading, "one token too many: %d at most", TOKEN_COUNT_MAX);
        return -E2BIG;
    }
    return add(reading->table, &row);
}

static int read_lines(struct reading *reading, struct span text)
{
    int err = 0;

    while (text.len > 0 && err == 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const size_t len = end ? (size_t)(end - text.ptr) : text.len;

        reading->line++;
        err = read_line(reading, (struct span){text.ptr, len});
        text.ptr += len + (end ? 1 : 0);
        text.len -= len + (end ? 1 : 0);
    }
    return err == -E2BIG ? 0 : err; /* told */
}

int token_table_parse(const char *name, struct span text, struct token_table **ret,
                      struct buf *mistakes)
{
    struct token_table *table = calloc(1, sizeof(*table));
    struct reading reading = {.name = name, .table = table, .mistakes = mistakes};

    if (!table) {
        return -ENOMEM;
    }
    table->text = malloc(text.len + 1);
    int err = table->text ? 0 : -ENOMEM;
    if (err == 0) {
        memcpy(table->text, text.len > 0 ? text.ptr : "", text.len);
        err = read_lines(&reading, (struct span){table->text, text.len});
    }
    if (err == 0 && reading.has_mistakes) {
        err = -EINVAL;
    }
    if (err < 0) {
        token_table_destroy(&table);
        return err;
    }
    *ret = table;
    return 0;
}

void token_table_destroy(struct token_table **table)
{
    if (*table) {
        free((*table)->rows);
        free((*table)->text);
        free(*table);
        *table = NULL;
    }
}

/* ---- using ---- */

size_t token_table_count(const struct token_table *table)
{
    return table->count;
}

const struct access_token *token_table_get(const struct token_table *table, size_t index)
{
    return index < table->count ? &table->rows[index] : NULL;
}

/* Looks at every row, and picks without a branch: how long it takes tells nothing of what a guess
 * has in common with which token. */
const struct access_token *token_table_find(const struct token_table *table, struct span token)
{
    unsigned char hash[TOKEN_HASH_BYTES];
    size_t found = 0; /* the row's place, counted from 1 */

    if (!token_is_well_formed(token)) {
        return NULL;
    }
    token_hash(token, hash);
    for (size_t i = 0; i < table->count; i++) {
        const int is_other = sodium_memcmp(table->rows[i].hash, hash, sizeof(hash)); /* 0 or -1 */
        const size_t mask = ~(size_t)(ptrdiff_t)is_other;

        found |= (i + 1) & mask;
    }
    sodium_memzero(hash, sizeof(hash));
    return found > 0 ? &table->rows[found - 1] : NULL;
}

bool access_token_may_touch(const struct access_token *token, struct span workspace)
{
    return workspace_patterns_match(token->workspaces, workspace);
}

/* ---- writing ---- */

bool token_line_write(const unsigned char hash[TOKEN_HASH_BYTES], enum access_role role,
                      struct span workspaces, struct span name, struct buf *out)
{
    char hex[TOKEN_HASH_BYTES * 2 + 1];

    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) {
            return false;
        }
    }
    if (workspace_patterns_refusal(workspaces) || !utf8_is_valid(name.ptr, name.len) ||
        name.len + workspaces.len + sizeof(hex) + 32 > TOKEN_LINE_MAX) {
        return false;
    }
    (void)sodium_bin2hex(hex, sizeof(hex), hash, TOKEN_HASH_BYTES);
    return buf_appendf(out, HASH_PREFIX "%s %s %.*s%s%.*s\n", hex, access_role_name(role),
                       (int)workspaces.len, workspaces.ptr, name.len > 0 ? " " : "", (int)name.len,
                       name.len > 0 ? name.ptr : "") == 0;
}
