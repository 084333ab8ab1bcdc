/* Follows `next` from page to page until there is none. */
#include "api/ctl/walk.h"

#include <stdio.h>
#include <string.h>

#include "api/ctl/asking.h"
#include "api/ctl/exit_code.h"
#include "common/base/err.h"
#include "common/core/json_exact.h"
#include "common/core/keys.h"

#define AFTER_MAX  256
#define PAGE_LIMIT 500

/* One page, and where the next one begins (empty: it is the last). */
static int read_page(struct asking *asking, const char *path, const char *after, json_t **ret_page,
                     char next[AFTER_MAX])
{
    char encoded[3 * AFTER_MAX];
    struct http_answer answer;
    struct call call;

    call_init(&call);
    (void)buf_appendf(&call.path, "%s?limit=%d", path, PAGE_LIMIT);
    if (after[0] && percent_encode(after, strlen(after), encoded, sizeof(encoded)) > 0) {
        (void)buf_appendf(&call.path, "&after=%s", encoded);
    }
    const int result = asking_call(asking, &call, &answer);

    call_done(&call);
    if (result != EXIT_CODE_OK) {
        return result;
    }
    *ret_page = option_is_set(asking->options, OPTION_JSON)
                    ? json_exact_load((struct span){answer.body.bytes, answer.body.len})
                    : answer_parse(&answer);
    http_answer_done(&answer);
    if (!json_is_object(*ret_page)) {
        json_decref(*ret_page);
        return asking_explain_nonsense(asking);
    }
    snprintf(next, AFTER_MAX, "%s", answer_text(*ret_page, "next"));
    return EXIT_CODE_OK;
}

int walk_workspaces(struct asking *asking, const char *after, walk_page_fn *each, void *arg)
{
    char at[AFTER_MAX];
    int result;

    snprintf(at, sizeof(at), "%s", after ? after : "");
    do {
        json_t *page;
        char next[AFTER_MAX];

        result = read_page(asking, "/v1/workspaces", at, &page, next);
        if (result == EXIT_CODE_OK) {
            result = each(page, arg);
            json_decref(page);
            memcpy(at, next, sizeof(at));
        }
    } while (result == EXIT_CODE_OK && at[0]);
    return result;
}

/* ---- sessions ---- */

/* A session may stand on two pages while the workspace changes: it is taken once. */
static int take_sessions(const json_t *page, json_t *seen, walk_session_fn *each, void *arg)
{
    const json_t *session;
    size_t i;

    json_array_foreach(json_object_get(page, "sessions"), i, session)
    {
        const char *name = answer_text(session, "sessionID");

        if (session_name_is_valid(name, strlen(name)) && !json_object_get(seen, name)) {
            json_object_set_new(seen, name, json_true());
            const int result = each(name, arg);

            if (result != 0) {
                return result;
            }
        }
    }
    return 0;
}

int walk_sessions(struct asking *asking, const char *workspace, walk_session_fn *each, void *arg)
{
    char path[64 + WORKSPACE_MAX], at[AFTER_MAX] = "";
    json_t *seen = json_object();
    int result;

    snprintf(path, sizeof(path), "/v1/workspaces/%s/sessions", workspace);
    do {
        char next[AFTER_MAX];
        json_t *page;

        result = read_page(asking, path, at, &page, next);
        if (result == EXIT_CODE_OK) {
            result = take_sessions(page, seen, each, arg);
            json_decref(page);
            memcpy(at, next, sizeof(at));
        }
    } while (result == EXIT_CODE_OK && at[0]);
    json_decref(seen);
    return result;
}
