/* Workspaces as a table: the list, or one of them. */
#include <errno.h>
#include <stdio.h>

#include "api/ctl/answers.h"
#include "api/ctl/print.h"
#include "api/ctl/table.h"
#include "common/core/buf.h"

static const char *const statuses[] = {"pending", "delivering", "verifying", "error", "parked"};

static void add_number(struct table *table, const json_t *number)
{
    char text[PRINT_MAX];

    snprintf(text, sizeof(text), "%.0f", json_number_value(number));
    table_add_str(table, text);
}

static void add_row(struct table *table, const json_t *workspace)
{
    const json_t *age = json_object_get(workspace, "oldestOpenAge");
    const char *name = json_string_value(json_object_get(workspace, "workspaceID"));
    const json_t *entries = json_object_get(workspace, "entries");
    char text[PRINT_MAX] = "-";

    table_add_str(table, name ? name : "");
    table_add_str(table, json_is_true(json_object_get(workspace, "paused")) ? "paused" : "");
    add_number(table, json_object_get(workspace, "sessions"));
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        add_number(table, json_object_get(entries, statuses[i]));
    }
    if (json_is_number(age)) {
        print_age((int64_t)(json_number_value(age) * 1000), text);
    }
    table_add_str(table, text);
}

int answer_print_workspaces(const json_t *root, struct span text, int64_t now_ms, struct buf *out)
{
    static const struct table_column columns[] = {
        {"WORKSPACE", 0}, {"", 0},      {"SESSIONS", 1}, {"PENDING", 1}, {"DELIVERING", 1},
        {"VERIFYING", 1}, {"ERROR", 1}, {"PARKED", 1},   {"OLDEST", 1},
    };
    const json_t *list = json_object_get(root, "workspaces");
    const char *next = json_string_value(json_object_get(root, "next"));
    const json_t *workspace;
    size_t i;

    (void)text, (void)now_ms;
    if (!json_is_array(list) && !json_object_get(root, "workspaceID")) {
        return -EINVAL;
    }
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));

    if (!table) {
        return -ENOMEM;
    }
    if (!list) {
        add_row(table, root);
    }
    json_array_foreach(list, i, workspace)
    {
        add_row(table, workspace);
    }
    const int err = table_print(table, 0, SIZE_MAX, out);

    table_destroy(&table);
    if (next) {
        buf_append_str(out, "more: --after ");
        print_safe(out, span_of(next));
        buf_append_str(out, "\n");
    }
    return err;
}
