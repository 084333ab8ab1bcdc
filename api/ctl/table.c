/* Aligned columns. Cells stand one after the other, a NUL behind each, in one buffer. */
#include "api/ctl/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/print.h"
#include "common/core/buf.h"
#include "common/core/span.h"

#define GAP            2
#define TABLE_MAX      ((size_t)256 * 1024 * 1024)
#define COLUMN_MIN     6 /* columns are not cut below that */
#define ELLIPSIS       "…"
#define ELLIPSIS_WIDTH 1

struct table {
    const struct table_column *columns;
    size_t count;
    struct buf cells;
    size_t cell_count;
};

struct table *table_create(const struct table_column *columns, size_t count)
{
    struct table *table =
        count > 0 && count <= TABLE_COLUMNS_MAX ? calloc(1, sizeof(*table)) : NULL;

    if (table) {
        table->columns = columns;
        table->count = count;
        buf_init(&table->cells, TABLE_MAX);
    }
    return table;
}

void table_destroy(struct table **table)
{
    if (*table) {
        buf_done(&(*table)->cells);
        free(*table);
        *table = NULL;
    }
}

void table_add(struct table *table, struct span cell)
{
    print_safe(&table->cells, cell); /* which also takes out every NUL */
    buf_append(&table->cells, "", 1);
    table->cell_count++;
}

void table_add_str(struct table *table, const char *cell)
{
    table_add(table, span_of(cell));
}

static void measure(const struct table *table, size_t max_cells, size_t widths[])
{
    const char *cell = table->cells.bytes;

    for (size_t i = 0; i < table->count; i++) {
        widths[i] = print_width(span_of(table->columns[i].title));
    }
    for (size_t i = 0; i < max_cells; i++, cell += strlen(cell) + 1) {
        const size_t width = print_width(span_of(cell));

        if (width > widths[i % table->count]) {
            widths[i % table->count] = width;
        }
    }
}

/* Takes columns from the widest until all fit, or none can give more. */
static void shrink(size_t widths[], size_t count, size_t columns)
{
    for (;;) {
        size_t total = GAP * (count - 1), widest = 0;

        for (size_t i = 0; i < count; i++) {
            total += widths[i];
            widest = widths[i] > widths[widest] ? i : widest;
        }
        if (total <= columns || widths[widest] <= COLUMN_MIN) {
            return;
        }
        widths[widest]--;
    }
}

static void append_spaces(struct buf *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_append(out, " ", 1);
    }
}

static void append_cell(const struct table *table, size_t column, const char *cell, size_t width,
                        struct buf *out)
{
    const struct span text = span_of(cell);
    const size_t full = print_width(text);
    const bool is_last = column + 1 == table->count;

    if (full > width) {
        const size_t len = print_fit(text, width - ELLIPSIS_WIDTH);

        buf_append(out, text.ptr, len);
        buf_append_str(out, ELLIPSIS);
        append_spaces(out, width - ELLIPSIS_WIDTH - print_width((struct span){text.ptr, len}));
    } else if (table->columns[column].is_number) {
        append_spaces(out, width - full);
        buf_append(out, text.ptr, text.len);
    } else {
        buf_append(out, text.ptr, text.len);
        append_spaces(out, is_last ? 0 : width - full);
    }
    if (is_last) {
        buf_append_str(out, "\n");
    } else {
        append_spaces(out, GAP);
    }
}

int table_print(const struct table *table, size_t columns, size_t max_rows, struct buf *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    size_t cells = table->cell_count - table->cell_count % table->count;

    if (table->cells.failed) {
        return -ENOMEM;
    }
    if (cells / table->count > max_rows) {
        cells = max_rows * table->count;
    }
    measure(table, cells, widths);
    if (columns > 0) {
        shrink(widths, table->count, columns);
    }
    for (size_t i = 0; i < table->count; i++) {
        append_cell(table, i, table->columns[i].title, widths[i], out);
    }
    const char *cell = table->cells.bytes;

    for (size_t i = 0; i < cells; i++, cell += strlen(cell) + 1) {
        append_cell(table, i % table->count, cell, widths[i % table->count], out);
    }
    return out->failed ? -ENOBUFS : 0;
}
