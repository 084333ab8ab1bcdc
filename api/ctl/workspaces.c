/* `workspaces`: all of them or one, by the numbers of their entries. */
#include <jansson.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/run.h"
#include "api/ctl/style.h"
#include "api/ctl/table.h"
#include "api/ctl/walk.h"
#include "api/ctl/workspace_answers.h"
#include "common/core/json_exact.h"

#define TEXT_MAX      ((size_t)512 * 1024 * 1024)
#define LIMIT_REACHED (-1)

struct listing {
    const struct options *options;
    struct table *table;
    struct buf out;
    uint64_t count, limit;
};

static int add_page(const json_t *page, void *arg)
{
    struct listing *listing = arg;
    const json_t *list = json_object_get(page, "workspaces"), *workspace;
    size_t i;

    json_array_foreach(list, i, workspace)
    {
        if (listing->count >= listing->limit) {
            return LIMIT_REACHED;
        }
        if (option_is_set(listing->options, OPTION_JSON)) {
            (void)buf_append_str(&listing->out, listing->count > 0 ? "," : "");
            (void)json_exact_dump(workspace, &listing->out);
        } else {
            workspace_table_add(listing->table, workspace);
        }
        listing->count++;
    }
    return 0;
}

static int show(struct listing *listing)
{
    if (option_is_set(listing->options, OPTION_JSON)) {
        (void)buf_append_str(&listing->out, "]}\n");
    } else if (table_print(listing->table,
                           &(struct table_view){.is_coloured = style_is_wanted(listing->options)},
                           &listing->out) < 0) {
        listing->out.failed = true;
    }
    return output_write(&listing->out);
}

static int list_all(const struct options *options)
{
    struct listing listing = {.options = options,
                              .table = workspace_table(),
                              .limit = option_count(options, OPTION_LIMIT, UINT64_MAX)};
    struct asking asking;
    int result = asking_open(&asking, options);

    buf_init(&listing.out, TEXT_MAX);
    if (result == EXIT_CODE_OK && listing.table) {
        const bool is_json = option_is_set(options, OPTION_JSON);

        (void)buf_append_str(&listing.out, is_json ? "{\"workspaces\":[" : "");
        result = walk_workspaces(&asking, option_text(options, OPTION_AFTER), add_page, &listing);
        result = result == EXIT_CODE_OK || result == LIMIT_REACHED ? show(&listing) : result;
    }
    asking_close(&asking);
    table_destroy(&listing.table);
    buf_done(&listing.out);
    return result;
}

static int make_one(const struct options *options, struct call *call)
{
    return call_workspace(options, "GET", "", call);
}

int command_workspaces(const struct options *options)
{
    const char *after = option_text(options, OPTION_AFTER);

    if (options_argument(options, 0)) {
        return asking_run(options, make_one, answer_print_workspaces);
    }
    if (after && !name_is_workspace(options, after)) {
        return EXIT_CODE_USAGE;
    }
    return list_all(options);
}
