/* Aligned columns. Cells stand one after the other in one buffer: a byte with its style, the text,
 * a NUL. */
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

void table_add_styled(struct table *table, enum style style, struct span cell)
{
    const char tag = (char)style;

    buf_append(&table->cells, &tag, 1);
    print_safe(&table->cells, cell); /* which also takes out every NUL */
    buf_append(&table->cells, "", 1);
    table->cell_count++;
}

void table_add(struct table *table, struct span cell)
{
    table_add_styled(table, STYLE_PLAIN, cell);
}

void table_add_str(struct table *table, const char *cell)
{
    table_add(table, span_of(cell));
}

static const char *next_cell(const char *cell)
{
    return cell + 1 + strlen(cell + 1) + 1;
}

static void measure(const struct table *table, size_t max_cells, size_t widths[])
{
    const char *cell = table->cells.bytes;

    for (size_t i = 0; i < table->count; i++) {
        widths[i] = print_width(span_of(table->columns[i].title));
    }
    for (size_t i = 0; i < max_cells; i++, cell = next_cell(cell)) {
        const size_t width = print_width(span_of(cell + 1));

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

struct line_cell {
    size_t column, width;
    struct span text;
    enum style style;
};

static void append_cell(const struct table *table, const struct line_cell *cell, bool is_coloured,
                        struct buf *out)
{
    const size_t full = print_width(cell->text);
    const bool is_cut = full > cell->width;
    const bool is_last = cell->column + 1 == table->count;
    const struct span shown = {
        cell->text.ptr,
        is_cut ? print_fit(cell->text, cell->width - ELLIPSIS_WIDTH) : cell->text.len,
    };
    const size_t used = is_cut ? print_width(shown) + ELLIPSIS_WIDTH : full;
    const bool is_number = table->columns[cell->column].is_number;

    append_spaces(out, is_number ? cell->width - used : 0);
    buf_append_str(out, style_begin(cell->style, is_coloured));
    buf_append(out, shown.ptr, shown.len);
    buf_append_str(out, is_cut ? ELLIPSIS : "");
    buf_append_str(out, style_end(cell->style, is_coloured));
    append_spaces(out, is_number || is_last ? 0 : cell->width - used);
    if (is_last) {
        buf_append_str(out, "\n");
    } else {
        append_spaces(out, GAP);
    }
}

int table_print(const struct table *table, const struct table_view *view, struct buf *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    const size_t cells = table->cell_count - table->cell_count % table->count;

    if (table->cells.failed) {
        return -ENOMEM;
    }
    measure(table, cells, widths);
    if (view->columns > 0) {
        shrink(widths, table->count, view->columns);
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct span title = span_of(table->columns[i].title);

        append_cell(table, &(struct line_cell){i, widths[i], title, STYLE_TITLE}, view->is_coloured,
                    out);
    }
    const char *at = table->cells.bytes;

    for (size_t i = 0; i < cells; i++, at = next_cell(at)) {
        const size_t column = i % table->count;
        const enum style style = (enum style)(unsigned char)at[0];

        append_cell(table, &(struct line_cell){column, widths[column], span_of(at + 1), style},
                    view->is_coloured, out);
    }
    return out->failed ? -ENOBUFS : 0;
}
