/* Live names for completion. Nothing is ever said: somebody is typing. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/answers.h"
#include "api/ctl/completion.h"
#include "api/ctl/http_client.h"
#include "api/ctl/options.h"
#include "api/ctl/token_file.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/core/keys.h"

#define ALL_MS       1000
#define NAMES_MAX    200 /* nobody reads more */
#define SESSIONS_MAX 20  /* that are looked through for IDs */

struct names {
    struct completion *completion;
    struct http_client *client;
    int64_t deadline_ms; /* monotonic */
    unsigned count;
};

static json_t *get(struct names *names, const char *path)
{
    const int64_t left_ms = names->deadline_ms - clock_mono_ms();
    struct http_answer answer;

    if (left_ms <= 0) {
        return NULL;
    }
    http_client_set_limits(names->client, (long)left_ms, (long)left_ms);
    if (http_client_call(names->client, "GET", path, (struct span){0}, &answer) < 0) {
        return NULL;
    }
    json_t *root = answer.status == 200 ? answer_parse(&answer) : NULL;

    http_answer_done(&answer);
    return root;
}

/* Only what needs no quotes in any shell. */
static bool is_plain(const char *name)
{
    return name[0] != '\0' && name[0] != '-' && name[0] != '~' &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:~%-") ==
               strlen(name);
}

static void offer(struct names *names, const char *name)
{
    const char *prefix = names->completion->prefix;

    if (names->count < NAMES_MAX && is_plain(name) && strncmp(name, prefix, strlen(prefix)) == 0) {
        names->count++;
        (void)buf_appendf(&names->completion->words, "%s\n", name);
    }
}

static void offer_members(struct names *names, const json_t *root, const char *list,
                          const char *member)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(root, list), i, one)
    {
        offer(names, answer_text(one, member));
    }
}

static void offer_ids(struct names *names, const json_t *root)
{
    const bool wants_failed = names->completion->wants_failed;
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(root, "entries"), i, entry)
    {
        if (!wants_failed || strcmp(answer_text(entry, "status"), "error") == 0) {
            offer(names, answer_text(entry, "id"));
        }
    }
}

static void offer_ids_of_sessions(struct names *names, const char *workspace,
                                  const json_t *sessions)
{
    const json_t *session;
    size_t i;

    json_array_foreach(json_object_get(sessions, "sessions"), i, session)
    {
        const char *name = answer_text(session, "sessionID");
        char path[WORKSPACE_MAX + SESSION_MAX + 64];

        if (i >= SESSIONS_MAX || !session_name_is_valid(name, strlen(name))) {
            break;
        }
        snprintf(path, sizeof(path), "/v1/workspaces/%s/sessions/%s/entries", workspace, name);
        json_t *root = get(names, path);

        offer_ids(names, root);
        json_decref(root);
    }
}

static void offer_of_workspace(struct names *names, const char *workspace)
{
    char path[WORKSPACE_MAX + 64];

    if (!workspace_name_is_valid(workspace, strlen(workspace))) {
        return;
    }
    snprintf(path, sizeof(path), "/v1/workspaces/%s/sessions", workspace);
    json_t *sessions = get(names, path);

    if (names->completion->wants_sessions) {
        offer_members(names, sessions, "sessions", "sessionID");
    }
    if (names->completion->wants_ids) {
        offer_ids_of_sessions(names, workspace, sessions);
    }
    json_decref(sessions);
}

static void offer_all(struct names *names)
{
    const struct completion *completion = names->completion;

    if (completion->wants_workspaces) {
        json_t *root = get(names, "/v1/workspaces?limit=200");

        offer_members(names, root, "workspaces", "workspaceID");
        json_decref(root);
    }
    if ((completion->wants_sessions || completion->wants_ids) && completion->workspace) {
        offer_of_workspace(names, completion->workspace);
    }
}

void completion_add_names(struct completion *completion)
{
    const char *server = completion->server ? completion->server : getenv("OUTBOXCTL_SERVER");
    const char *token_file = getenv("OUTBOXCTL_TOKEN_FILE"), *mistake = NULL;
    const struct http_tls tls = options_tls(NULL);
    AUTO_FREE char *token = NULL;

    if (!(completion->wants_workspaces || completion->wants_sessions || completion->wants_ids) ||
        curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        return;
    }
    if (!token_file || !token_file[0] || !token_file_read(token_file, &token)) {
        struct names names = {
            .completion = completion,
            .client = http_client_create(server && server[0] ? server : OPTIONS_DEFAULT_SERVER,
                                         token, &tls, &mistake),
            .deadline_ms = clock_mono_ms() + ALL_MS,
        };

        if (names.client) {
            offer_all(&names);
        }
        http_client_destroy(&names.client);
    }
    curl_global_cleanup();
}
