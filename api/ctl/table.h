/* A table of texts with aligned columns, cut to a width if there is one. Pure. */
#ifndef API_CTL_TABLE_H
#define API_CTL_TABLE_H

#include <stddef.h>

struct buf;
struct span;
struct table;

#define TABLE_COLUMNS_MAX 12

struct table_column {
    const char *title;
    int is_number; /* not 0: aligned to the right */
};

/* NULL if out of memory. `columns` must outlive the table; TABLE_COLUMNS_MAX at most. */
struct table *table_create(const struct table_column *columns, size_t count);
void table_destroy(struct table **table);
/* The next cell, row by row; made safe for a terminal. Out of memory shows in table_print. */
void table_add(struct table *table, struct span cell);
void table_add_str(struct table *table, const char *cell);
/* Titles and rows are appended to `out`; lines longer than `columns`
 * (0: no limit) are avoided by cutting the widest cells. At most max_rows rows are written. 0 or
 * -ENOMEM, -ENOBUFS. */
int table_print(const struct table *table, size_t columns, size_t max_rows, struct buf *out);

#endif
