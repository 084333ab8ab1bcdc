/* The API's answers as text for people. What a member lacks or has of a wrong type is left out. */
#ifndef API_CTL_ANSWERS_H
#define API_CTL_ANSWERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/span.h"

struct buf;
struct http_answer;
struct table;

struct answer_view {
    int64_t now_ms;
    bool is_coloured;
    const json_t *others; /* show: what other entries are ({"ID":"STATUS"}); NULL: not known */
};

/* Appends what a person should see; 0, or -EINVAL for an answer that cannot be one of the API's.
 * `root` was read from `text`, integers as reals. Pure. */
typedef int answer_print_fn(const json_t *root, struct span text, const struct answer_view *view,
                            struct buf *out);
answer_print_fn answer_print_retried;
answer_print_fn answer_print_changed; /* edit, remove, dismiss */
answer_print_fn answer_print_members; /* whatever it holds, a line each */
answer_print_fn answer_print_entry;   /* an entry or its tombstone (entry_answers.c) */
answer_print_fn answer_print_workspaces;

/* A table of entries, and a row of it; with a column for the session where they are of several. */
struct table *answer_entries_table(bool has_sessions);
void answer_entries_add(struct table *table, const json_t *entry, bool has_sessions,
                        const struct answer_view *view);

/* A member's text; empty without. */
const char *answer_text(const json_t *object, const char *name);
/* The answer's JSON, integers as reals; NULL if it is none. The caller gives it back. */
json_t *answer_parse(const struct http_answer *answer);

/* To stdout; 0 or -EINVAL. */
int answer_print(const struct http_answer *answer, answer_print_fn *print,
                 const struct answer_view *view);
/* The body as it came, and a line feed. */
void answer_pass_through(const struct http_answer *answer);
/* An answer that is no success: what it means on stderr. Returns the enum exit_code that fits it.
 */
int answer_explain(const struct http_answer *answer, const char *server);

#endif
