/* `list`: the open entries of a session, or of a workspace session by session, filtered here. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "api/ctl/print.h"
#include "api/ctl/run.h"
#include "api/ctl/style.h"
#include "api/ctl/table.h"
#include "api/ctl/walk.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/core/json_exact.h"

#define TEXT_MAX ((size_t)512 * 1024 * 1024)

/* Where the entries go: rows of a table, JSON as it was spelt, or IDs. */
enum form { FORM_TABLE, FORM_JSON, FORM_IDS };

struct listing {
    struct asking asking;
    const struct options *options;
    struct answer_view view;
    enum form form;
    bool has_sessions;
    uint64_t count, limit;
    struct table *table; /* FORM_TABLE */
    struct buf out;
};

static bool is_among(const struct options *options, enum option_id option, const char *text)
{
    struct span list = span_of(option_text(options, option)), one;

    while (span_next_word(&list, ',', &one)) {
        if (span_equal(one, span_of(text))) {
            return true;
        }
    }
    return !option_is_set(options, option);
}

static void add_entry(struct listing *listing, const json_t *entry)
{
    switch (listing->form) {
    case FORM_TABLE:
        answer_entries_add(listing->table, entry, listing->has_sessions, &listing->view);
        return;
    case FORM_JSON:
        (void)buf_append_str(&listing->out, listing->count > 0 ? "," : "");
        (void)json_exact_dump(entry, &listing->out);
        return;
    case FORM_IDS:
        print_safe(&listing->out, span_of(answer_text(entry, "id")));
        (void)buf_append_str(&listing->out, "\n");
        return;
    }
}

/* False: the limit is reached. */
static bool add_entries(struct listing *listing, const json_t *entries)
{
    const char *kind = option_text(listing->options, OPTION_KIND);
    const json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        if (listing->count >= listing->limit) {
            return false;
        }
        if (is_among(listing->options, OPTION_STATUS, answer_text(entry, "status")) &&
            (!kind || strcmp(kind, answer_text(entry, "kind")) == 0)) {
            add_entry(listing, entry);
            listing->count++;
        }
    }
    return listing->count < listing->limit;
}

/* ---- reading ---- */

/* 0: go on; else an enum exit_code, or LIMIT_REACHED. */
#define LIMIT_REACHED (-1)

static int list_session(const char *session, void *arg)
{
    struct listing *listing = arg;
    struct http_answer answer;
    struct call call;

    call_init(&call);
    (void)buf_appendf(&call.path, "/v1/workspaces/%s/sessions/%s/entries",
                      options_argument(listing->options, 0), session);
    int result = asking_call(&listing->asking, &call, &answer);

    call_done(&call);
    if (result != EXIT_CODE_OK) {
        return result;
    }
    json_t *root = listing->form == FORM_JSON
                       ? json_exact_load((struct span){answer.body.bytes, answer.body.len})
                       : answer_parse(&answer);
    const json_t *entries = json_object_get(root, "entries");

    if (!json_is_array(entries)) {
        result = asking_explain_nonsense(&listing->asking);
    } else if (!add_entries(listing, entries)) {
        result = LIMIT_REACHED;
    }
    json_decref(root);
    http_answer_done(&answer);
    return result;
}

static int read_all(struct listing *listing)
{
    const char *session = options_argument(listing->options, 1);
    const int result = session
                           ? list_session(session, listing)
                           : walk_sessions(&listing->asking, options_argument(listing->options, 0),
                                           list_session, listing);

    return result == LIMIT_REACHED ? EXIT_CODE_OK : result;
}

/* ---- showing ---- */

static int show(struct listing *listing)
{
    switch (listing->form) {
    case FORM_TABLE:
        if (table_print(listing->table,
                        &(struct table_view){.is_coloured = listing->view.is_coloured},
                        &listing->out) < 0) {
            listing->out.failed = true;
        }
        break;
    case FORM_JSON:
        (void)buf_append_str(&listing->out, "]}\n");
        break;
    case FORM_IDS:
        break;
    }
    return output_write(&listing->out);
}

static int run(struct listing *listing)
{
    int result = asking_open(&listing->asking, listing->options);

    if (result == EXIT_CODE_OK) {
        result = read_all(listing);
        asking_close(&listing->asking);
    }
    return result == EXIT_CODE_OK ? show(listing) : result;
}

int command_list(const struct options *options)
{
    const char *session = options_argument(options, 1);
    struct listing listing = {
        .options = options,
        .view = {.now_ms = clock_wall_ms(), .is_coloured = style_is_wanted(options)},
        .form = option_is_set(options, OPTION_JSON)    ? FORM_JSON
                : option_is_set(options, OPTION_QUIET) ? FORM_IDS
                                                       : FORM_TABLE,
        .has_sessions = !session,
        .limit = option_count(options, OPTION_LIMIT, UINT64_MAX),
    };
    int result = EXIT_CODE_USAGE;

    if (!name_is_workspace(options, options_argument(options, 0)) ||
        (session && !name_is_session(options, session))) {
        return result;
    }
    buf_init(&listing.out, TEXT_MAX);
    (void)buf_append_str(&listing.out, listing.form == FORM_JSON ? "{\"entries\":[" : "");
    listing.table = answer_entries_table(listing.has_sessions);
    if (listing.table) {
        result = run(&listing);
    }
    table_destroy(&listing.table);
    buf_done(&listing.out);
    return result;
}
