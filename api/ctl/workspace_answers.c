/* Workspaces as a table: the list, or one of them. */
#include "api/ctl/workspace_answers.h"

#include <errno.h>
#include <stdio.h>

#include "api/ctl/answers.h"
#include "api/ctl/print.h"
#include "api/ctl/table.h"
#include "common/core/buf.h"

static const struct {
    const char *status;
    enum style style; /* of a number that is not 0 */
} statuses[] = {
    {"pending", STYLE_PLAIN}, {"delivering", STYLE_PLAIN}, {"verifying", STYLE_CAREFUL},
    {"error", STYLE_BAD},     {"parked", STYLE_CAREFUL},
};

static void add_number(struct table *table, enum style style, const json_t *number)
{
    char text[PRINT_MAX];

    snprintf(text, sizeof(text), "%.0f", json_number_value(number));
    table_add_styled(table, json_number_value(number) > 0 ? style : STYLE_PLAIN, span_of(text));
}

struct table *workspace_table(void)
{
    static const struct table_column columns[] = {
        {"WORKSPACE", 0}, {"", 0},      {"SESSIONS", 1}, {"PENDING", 1}, {"DELIVERING", 1},
        {"VERIFYING", 1}, {"ERROR", 1}, {"PARKED", 1},   {"OLDEST", 1},
    };

    return table_create(columns, sizeof(columns) / sizeof(columns[0]));
}

void workspace_table_add(struct table *table, const json_t *workspace)
{
    const json_t *age = json_object_get(workspace, "oldestOpenAge");
    const json_t *entries = json_object_get(workspace, "entries");
    const bool is_paused = json_is_true(json_object_get(workspace, "paused"));
    char text[PRINT_MAX] = "-";

    table_add_str(table, answer_text(workspace, "workspaceID"));
    table_add_styled(table, STYLE_CAREFUL, span_of(is_paused ? "paused" : ""));
    add_number(table, STYLE_PLAIN, json_object_get(workspace, "sessions"));
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        add_number(table, statuses[i].style, json_object_get(entries, statuses[i].status));
    }
    if (json_is_number(age)) {
        print_age((int64_t)(json_number_value(age) * 1000), text);
    }
    table_add_str(table, text);
}

int answer_print_workspaces(const json_t *root, struct span text, const struct answer_view *view,
                            struct buf *out)
{
    (void)text;
    if (!json_object_get(root, "workspaceID")) {
        return -EINVAL;
    }
    struct table *table = workspace_table();

    if (!table) {
        return -ENOMEM;
    }
    workspace_table_add(table, root);
    const int err = table_print(table, &(struct table_view){.is_coloured = view->is_coloured}, out);

    table_destroy(&table);
    return err;
}
