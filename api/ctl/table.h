/* A table of texts with aligned columns, cut to a width if there is one. Pure. */
#ifndef API_CTL_TABLE_H
#define API_CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/ctl/style.h"

struct buf;
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
/* The same, to be coloured where colours are wanted. */
void table_add_styled(struct table *table, enum style style, struct span cell);

struct table_view {
    size_t columns; /* lines that are longer are avoided by cutting the widest cells; 0: no limit */
    bool is_coloured; /* titles, and cells that have a style */
};
/* Titles and rows are appended to `out`. 0 or -ENOMEM, -ENOBUFS. */
int table_print(const struct table *table, const struct table_view *view, struct buf *out);

#endif
