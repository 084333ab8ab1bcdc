/* The API's answers as text for people. What a member lacks or has of a wrong type is left out. */
#ifndef API_CTL_ANSWERS_H
#define API_CTL_ANSWERS_H

#include <jansson.h>
#include <stdint.h>

#include "common/core/span.h"

struct buf;
struct http_answer;

/* Appends what a person should see; 0, or -EINVAL for an answer that cannot be one of the API's.
 * `root` was read from `text`, integers as reals. */
typedef int answer_print_fn(const json_t *root, struct span text, int64_t now_ms, struct buf *out);
answer_print_fn answer_print_list;
answer_print_fn answer_print_entry;
answer_print_fn answer_print_retried;
answer_print_fn answer_print_changed; /* edit, remove */
answer_print_fn answer_print_accepted;
answer_print_fn answer_print_members; /* whatever it holds, a line each */
answer_print_fn answer_print_workspaces;

/* To stdout; 0 or -EINVAL. */
int answer_print(const struct http_answer *answer, answer_print_fn *print, int64_t now_ms);
/* The body as it came, and a line feed. */
void answer_pass_through(const struct http_answer *answer);
/* An answer that is no success: a sentence on stderr. Returns the enum exit_code that fits it. */
int answer_explain(const struct http_answer *answer, const char *server);

#endif
