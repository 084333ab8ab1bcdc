/* Page by page through what the API lists in pages. */
#ifndef API_CTL_WALK_H
#define API_CTL_WALK_H

#include <jansson.h>

struct asking;

/* Runs `each` for every session of a workspace that holds entries, each once; ends when it returns
 * something else than 0. Returns that, or the enum exit_code of a page that could not be read. */
typedef int walk_session_fn(const char *session, void *arg);
int walk_sessions(struct asking *asking, const char *workspace, walk_session_fn *each, void *arg);

/* The same with the pages of GET /v1/workspaces, behind `after` (NULL: from the first). `page` is
 * one of the answers; with --json its members stand as they were spelt (json_exact.h). */
typedef int walk_page_fn(const json_t *page, void *arg);
int walk_workspaces(struct asking *asking, const char *after, walk_page_fn *each, void *arg);

#endif
